"""What a crawl did, by the log of the web's server."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bigcrawl_simweb.basics.addresses import index_of
from bigcrawl_simweb.serve.access_log import read_exchanges

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.hostile.web import WebPlan

_SECOND_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Figures:
    """One crawl between two moments.

    Attributes:
        seconds: between them.
        pages: of healthy hosts, answered.
        robots: robots.txt of healthy hosts, answered.
        bad: requests to hosts of each bad kind that reached the server.
        bad_slots: fetches of bad hosts that were open at a time, in the mean, as far as the server saw them.
        cpu_s: of the crawling process.
    """

    seconds: float
    pages: int
    robots: int
    bad: Counter[str]
    bad_slots: float
    cpu_s: float

    @property
    def pages_per_s(self) -> float:
        """Pages of healthy hosts a second."""
        return self.pages / self.seconds

    @property
    def requests_per_s(self) -> float:
        """Requests to healthy hosts a second."""
        return (self.pages + self.robots) / self.seconds


def figures_of(log: Path, plan: WebPlan, begin_ms: int, end_ms: int, cpu_s: float) -> Figures:
    """Read the log."""
    pages = robots = open_ms = 0
    bad: Counter[str] = Counter()
    for each in read_exchanges(log):
        index = index_of(each.host)
        kind = None if index is None else plan.kind_of(index)
        if kind is not None:
            open_ms += max(0, min(each.end_ms, end_ms) - max(each.start_ms, begin_ms))
        if not begin_ms <= each.start_ms < end_ms:
            continue
        if kind is not None:
            bad[kind] += 1
        elif each.is_robots:
            robots += 1
        else:
            pages += each.status == 200
    span_ms = end_ms - begin_ms
    return Figures(span_ms / _SECOND_MS, pages, robots, bad, open_ms / span_ms, cpu_s)
