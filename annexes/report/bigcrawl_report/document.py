"""The whole report, and its JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bigcrawl import __version__
from bigcrawl_report.crawl_parts import crawl_sections
from bigcrawl_report.irlbot import irlbot
from bigcrawl_report.lead import lead
from bigcrawl_report.politeness import politeness, ubicrawler
from bigcrawl_report.polybot import polybot
from bigcrawl_report.rates import HistoryRates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl.views.figures import CrawlFigures
    from bigcrawl_report.lead import Lead
    from bigcrawl_report.tables import Plot, Section

FORMAT: Final = 1
"""The version of report.json; raised if a name changes its meaning or is removed."""


@dataclass(frozen=True, slots=True)
class Document:
    """A report of figures gathered at `time_s`, Unix seconds. `lead` is its first screen; `papers` come last."""

    crawl: str
    time_s: float
    is_finished: bool
    parts: Sequence[Section]
    papers: Sequence[Section] = ()
    lead: Lead | None = None

    @property
    def sections(self) -> list[Section]:
        return [*self.parts, *self.papers]

    @property
    def plots(self) -> list[Plot]:
        first = [self.lead.plot] if self.lead is not None else []
        return [*first, *(plot for section in self.sections for plot in section.plots)]

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "bigcrawl": __version__,
            "crawl": self.crawl,
            "time_s": round(self.time_s, 3),
            "finished": self.is_finished,
            "tables": {table.name: table.to_json() for section in self.sections for table in section.tables},
            "plots": {plot.name: plot.to_json() for plot in self.plots},
        }


def document_of(figures: CrawlFigures, events: Sequence[Mapping[str, Any]] = ()) -> Document:
    """Build the document from the figures and the events of the crawl."""
    rates = HistoryRates(figures.history)
    parts = [*crawl_sections(figures, rates), politeness(figures)]
    papers = [polybot(figures, rates), irlbot(figures, rates), ubicrawler(figures)]
    is_finished = bool(figures.status["finished"])
    first = lead(figures, rates, events)
    return Document(figures.config.crawl.name, figures.time_s, is_finished, parts, papers, first)
