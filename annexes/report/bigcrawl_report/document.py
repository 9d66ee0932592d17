"""The whole report, and its JSON."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from bigcrawl import __version__
from bigcrawl_report.irlbot import irlbot
from bigcrawl_report.overview import overview
from bigcrawl_report.politeness import politeness
from bigcrawl_report.polybot import polybot
from bigcrawl_report.rates import HistoryRates
from bigcrawl_report.ubicrawler import ubicrawler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.views.figures import CrawlFigures
    from bigcrawl_report.tables import Plot, Section

FORMAT: Final = 1
"""The version of report.json; raised if a name changes its meaning or is removed."""


@dataclass(frozen=True, slots=True)
class Document:
    """A report; its figures were gathered at `time_s`, Unix seconds."""

    crawl: str
    time_s: float
    is_finished: bool
    sections: Sequence[Section]

    @property
    def time_made(self) -> str:
        return datetime.fromtimestamp(self.time_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")

    @property
    def plots(self) -> list[Plot]:
        return [plot for section in self.sections for plot in section.plots]

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


def document_of(figures: CrawlFigures) -> Document:
    rates = HistoryRates(figures.history)
    sections = [
        overview(figures, rates),
        polybot(figures),
        irlbot(figures, rates),
        politeness(figures),
        ubicrawler(figures),
    ]
    return Document(figures.config.crawl.name, figures.time_s, bool(figures.status["finished"]), sections)
