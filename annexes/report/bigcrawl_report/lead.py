"""The first screen: the crawl's identity, its state in one sentence, five figures with their history, and one plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.clock import length_text
from bigcrawl_report.tables import Plot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl.views.figures import CrawlFigures
    from bigcrawl_report.rates import HistoryRates

Course = list[float | None]

SEEDS_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Figure:
    """A large number; `more` are the lines below it, `course` its history, drawn without axes."""

    name: str
    value: str
    more: Sequence[str]
    course: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Lead:
    """The first screen.

    Attributes:
        kind: "good", "warn", "bad" or "done".
        identity: names and values; a number is a time in Unix seconds.
    """

    kind: str
    word: str
    why: str
    identity: Sequence[tuple[str, str | float]]
    figures: Sequence[Figure]
    plot: Plot


def lead(of: CrawlFigures, rates: HistoryRates, events: Sequence[Mapping[str, Any]]) -> Lead:
    kind, word, why = state_of(of.status)
    return Lead(kind, word, why, _identity(of, rates), _figures(of, rates), _course_plot(rates, events))


def state_of(status: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the crawl's current state: the kind, a word and a sentence."""
    reasons, nodes = status["standstill"], len(status["nodes"])
    first = _sentence(reasons[0]) if reasons else ""
    if status["finished"]:
        return "done", "Finished", first or "The crawl is finished."
    if not nodes:
        return "bad", "Stopped", "No node runs, and the crawl is not finished."
    if (rate := status["pages_per_s"]) > 0:
        doing = f"{nodes:,} {'node fetches' if nodes == 1 else 'nodes fetch'} {rate:,.1f} pages a second."
        return ("warn", "Coming to a stop", f"{doing} {first}") if first else ("good", "Crawling", doing)
    if "" in status.get("paused", ()):
        return "warn", "Paused", first
    return "warn", "Standing still", first or "The reason is not known yet."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _identity(of: CrawlFigures, rates: HistoryRates) -> list[tuple[str, str | float]]:
    status = of.status
    seeds = status.get("seeds") or []
    since_s = status.get("since_s") or (rates.steps[0].from_s if rates.steps else None)
    rows: list[tuple[str, str | float | None]] = [
        ("spider", status.get("spider")),
        ("seeds", ", ".join(seeds[:SEEDS_SHOWN]) + (" …" if len(seeds) > SEEDS_SHOWN else "")),
        ("since", since_s),
        ("scope", status.get("scope")),
        ("contact", status.get("contact")),
        ("report of", of.time_s),
    ]
    return [(name, value) for name, value in rows if value]


def _figures(of: CrawlFigures, rates: HistoryRates) -> list[Figure]:
    status, urls = of.status, of.status["urls"]
    waiting = urls["disk"] + urls["queued"] + urls["inbox"]
    done_in_s = status.get("done_in_s")
    items = status.get("items")
    errors, bad = of.sum_of("error:"), of.sum_of("status:4") + of.sum_of("status:5")
    speeds = [rate for rate in rates.a_second("pages") if rate is not None]
    mean = sum(filter(None, rates.growth_per_step("pages"))) / max(1, rates.active_s)
    ran = f"nodes ran for {length_text(rates.active_s, 1)}" if rates.steps else ""
    failing = _sums([rates.a_second(name) for name in ("errors", "status_4xx", "status_5xx")])
    return [
        Figure("Pages", f"{of.pages:,}", [_size_text(of.counts["bytes"]), ran], rates.level_per_step("pages")),
        Figure(
            "Pages a second",
            f"{mean:,.1f}",
            ["mean, while nodes ran", f"{max(speeds, default=0):,.1f} at best"],
            rates.a_second("pages"),
        ),
        Figure(
            "URLs waiting",
            f"{waiting:,}",
            [
                f"at least {length_text(done_in_s, 1)} at this rate" if done_in_s else "nothing is fetched now",
                f"{urls['withheld']:,} more are withheld" if urls["withheld"] else "",
            ],
            _sums([rates.level_per_step(name) for name in ("urls_disk", "urls_queued", "urls_inbox")]),
        ),
        Figure(
            "Items",
            "unknown" if items is None else f"{items:,}",
            ["not counted" if items is None else f"{items / max(1, of.pages):,.2f} a page" if items else "none yet"],
            rates.a_second("items"),
        ),
        Figure(
            "Failures",
            f"{errors + bad:,}",
            [f"{errors:,} got no answer", f"{bad:,} got status 4xx or 5xx"],
            failing,
        ),
    ]


def _size_text(size: float) -> str:
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= scale:
            return f"{size / scale:,.2f} {unit} of bodies"
    return f"{size / 1e3:,.1f} kB of bodies"


def _sums(courses: Sequence[Course]) -> Course:
    return [
        None if None in each else sum(value for value in each if value is not None)
        for each in zip(*courses, strict=True)
    ]


def _course_plot(rates: HistoryRates, events: Sequence[Mapping[str, Any]]) -> Plot:
    series = {"pages": rates.a_second("pages"), "items": rates.a_second("items")}
    shown = {name: values for name, values in series.items() if name == "pages" or any(values)}
    title = "Pages and items a second" if len(shown) > 1 else "Pages a second"
    return Plot("pages_per_s", title, rates.ends_s, dict(shown), "", "per second", stops=rates.stops, events=events)
