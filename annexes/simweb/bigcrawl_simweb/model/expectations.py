"""The statuses that a correct crawler may get at each resource, even while hosts are down, slow or overloaded."""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import formatdate
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl_simweb.basics.answer import Answer, Fault
from bigcrawl_simweb.basics.features import Feature
from bigcrawl_simweb.basics.markup import render_notice
from bigcrawl_simweb.basics.power_law import mix_bits
from bigcrawl_simweb.basics.resources import ENDLESS_KINDS, Kind, Resource
from bigcrawl_simweb.exhibits.exhibit import ABORTED
from bigcrawl_simweb.exhibits.table import row_of
from bigcrawl_simweb.model.answers import status_of
from bigcrawl_simweb.model.names import HOMES_HOST

if TYPE_CHECKING:
    from bigcrawl_simweb.model.names import HostNames
    from bigcrawl_simweb.model.robots import RobotsFile, RobotsFiles

_PERIOD: Final = 29  # a prime, so that every row of outages meets every kind of robots.txt


@dataclass(frozen=True, slots=True)
class Outage:
    """The times of an outage, and the answers during it.

    Attributes:
        every_ms: the host is down for `away_ms` in every such period.
        status: the logged status while the host is down.
        retry_after: "" for none, else "seconds" or "date".
        robots_too: whether robots.txt is unavailable as well, which forbids the whole host (RFC 9309 §2.3.1.4).
    """

    name: str
    every_ms: int
    away_ms: int
    status: int
    lesson: str
    fault: Fault = Fault.NONE
    retry_after: str = ""
    robots_too: bool = False

    @property
    def is_lasting(self) -> bool:
        return self.away_ms == self.every_ms

    def left_ms(self, host: int, at_ms: int) -> int:
        passed = (at_ms + mix_bits(host)) % self.every_ms
        return max(0, self.away_ms - passed)

    def answer(self, left_ms: int, at_ms: int) -> Answer:
        headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html; charset=utf-8"),)
        # Rounded up; otherwise a crawler that obeys it would come too soon.
        if self.retry_after == "seconds":
            headers += (("Retry-After", str(-(-left_ms // 1000))),)
        elif self.retry_after == "date":
            headers += (("Retry-After", formatdate(-(-(at_ms + left_ms) // 1000), usegmt=True)),)
        return Answer(self.status, headers, render_notice(self.status), fault=self.fault)


_RETRY: Final = "waits, then asks again, and leaves the host alone meanwhile"
_OUTAGES: Final = {
    3: Outage("down", 1000, 1000, 503, "gives up on the host", fault=Fault.RESET, robots_too=True),
    7: Outage("silent", 1000, 1000, 503, "gives up on the host", fault=Fault.SILENT, robots_too=True),
    12: Outage("comes and goes", 30_000, 10_000, 503, "comes back later", fault=Fault.RESET, robots_too=True),
    17: Outage("overloaded", 20_000, 3_000, 503, _RETRY),
    20: Outage("overloaded with Retry-After", 20_000, 4_000, 503, _RETRY, retry_after="seconds"),
    24: Outage("limited", 15_000, 3_000, 429, _RETRY, retry_after="seconds"),
    27: Outage("limited until a date", 15_000, 4_000, 429, _RETRY, retry_after="date"),
}
OUTAGES: Final = tuple(_OUTAGES.values())


def outage_of(host: int) -> Outage | None:
    return _OUTAGES.get(host % _PERIOD)


@dataclass(frozen=True, slots=True)
class Expected:
    """The correct result for one URL.

    Attributes:
        statuses: any of these is right.
        required: False if only uncertain links lead there, or if the host may be unreachable.
        retriable: whether it may be requested again: 429, 5xx, and incomplete answers.
        whole: whether a complete answer is possible.
        endless: whether it lies in an infinite space.
    """

    statuses: frozenset[int]
    required: bool = True
    retriable: bool = False
    whole: bool = True
    endless: bool = False


class Expectation(NamedTuple):
    """The expected treatment of a resource; `is_certain` if all correct crawlers find its links."""

    expected: Expected
    is_certain: bool


class Expectations:
    """Computes a correct crawl's treatment of every resource; `may_differ` if it may find different URLs."""

    def __init__(self, features: frozenset[Feature], robots: RobotsFiles, names: HostNames) -> None:
        self.may_differ = bool(features)
        self._has_outages = Feature.OUTAGES in features
        self._has_sitemaps = Feature.SITEMAPS in features
        self._robots = robots
        self._names = names

    def outage(self, host: int) -> Outage | None:
        return outage_of(host) if self._has_outages and host < HOMES_HOST else None

    def resolves(self, host: int) -> bool:
        return self._names.resolves(host)

    def names_sitemap(self, host: int) -> bool:
        robots = self.robots(host)
        return self._has_sitemaps and robots.text is not None and robots.names_sitemap

    def is_calm(self, host: int) -> bool:
        return self.outage(host) is None and self._names.resolves(host)

    def robots(self, host: int) -> RobotsFile:
        return self._robots.rows[0] if host >= HOMES_HOST else self._robots.of(host)

    def closes(self, resource: Resource) -> bool:
        outage = self.outage(resource.host)
        if outage is not None and outage.is_lasting and outage.robots_too:
            return True
        return self.robots(resource.host).closes(resource)

    def of(self, resource: Resource) -> Expectation:
        expectation = _kind_expectation(resource)
        outage = self.outage(resource.host)
        if outage is None and self.robots(resource.host).is_sure:
            return expectation
        expected = expectation.expected
        statuses, whole = expected.statuses, expected.whole
        if outage is not None:
            statuses = frozenset({outage.status}) if outage.is_lasting else statuses | {outage.status}
            whole = whole and not outage.robots_too
        undecided = not self.robots(resource.host).is_sure or (outage is not None and outage.robots_too)
        return Expectation(
            Expected(
                statuses=statuses if whole else statuses | {ABORTED},
                required=expected.required and not undecided,
                retriable=expected.retriable or outage is not None,
                whole=whole,
                endless=expected.endless,
            ),
            is_certain=False,
        )


_USUAL: Final = {
    status: Expectation(Expected(frozenset({status}), retriable=status >= 500), is_certain=True)
    for status in (200, 301, 302, 404, 500, 503)
}
_NEWS: Final = Expectation(Expected(frozenset({200, 304})), is_certain=True)
_ENDLESS: Final = Expectation(Expected(frozenset({200}), required=False, endless=True), is_certain=False)


def _kind_expectation(resource: Resource) -> Expectation:
    if resource.kind is Kind.EXHIBIT:
        row = row_of(resource)
        expected = Expected(row.statuses, retriable=row.is_retriable, whole=row.is_whole)
        return Expectation(expected, row.is_certain)
    if resource.kind is Kind.NEWS:
        return _NEWS
    return _ENDLESS if resource.kind in ENDLESS_KINDS else _USUAL[status_of(resource)]


def usual_status(expected: Expected) -> int:
    return 200 if 200 in expected.statuses else min(expected.statuses)
