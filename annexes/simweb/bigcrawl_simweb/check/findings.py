"""The findings of the checker, and their report.

To add a kind of finding, add a field to `Report` and a heading to `HEADINGS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bigcrawl_simweb.basics.exchange import Exchange

_SHOWN_MAX: Final = 10

HEADINGS: Final = {
    "missing": "not fetched",
    "unexpected": "fetched, but not expected",
    "wrong_status": "other status than expected",
    "refetched": "fetched more than once",
    "over_retried": "retried more often than allowed",
    "concurrent": "too many requests to one host at once",
    "host_too_soon": "host delay not kept",
    "pld_concurrent": "too many requests to one PLD at once",
    "pld_too_soon": "PLD delay not kept",
    "server_too_soon": "server gap not kept",
    "retry_after_ignored": "Retry-After not kept",
    "disallowed": "forbidden by robots.txt",
    "robots_not_first": "robots.txt not received first",
    "robots_stale": "fetched by a robots.txt that was too old",
    "robots_refetched": "robots.txt asked for again too early",
    "too_deep": "too much of an infinite space",
    "nofollowed": "only nofollow links lead there",
}


@dataclass(frozen=True, slots=True)
class ShortGap:
    """Two exchanges of a host, PLD or server too close in time; a negative `gap_ms` means that they overlap."""

    name: str
    earlier: Exchange
    later: Exchange
    gap_ms: int
    wanted_ms: int

    def __str__(self) -> str:
        between = f"{_span_text(self.earlier)} and {_span_text(self.later)}"
        return f"{self.name}: {self.gap_ms} ms instead of {self.wanted_ms} ms between {between}"


@dataclass(frozen=True, slots=True)
class BadFetch:
    url: str
    at_ms: int

    def __str__(self) -> str:
        return f"{self.url} at {self.at_ms}"


@dataclass(frozen=True, slots=True)
class StaleFetch:
    url: str
    at_ms: int
    age_ms: int

    def __str__(self) -> str:
        return f"{self.url} at {self.at_ms}, {self.age_ms} ms after robots.txt"


@dataclass(frozen=True, slots=True)
class Refetch:
    """A URL requested `times` times, without retries; `at_ms` is the last time."""

    url: str
    times: int
    at_ms: int

    def __str__(self) -> str:
        return f"{self.url}: {self.times} times, last at {self.at_ms}"


@dataclass(frozen=True, slots=True)
class OverRetry:
    """A URL retried too often; `at_ms` is the last time."""

    url: str
    retries: int
    allowed: int
    at_ms: int

    def __str__(self) -> str:
        return f"{self.url}: {self.retries} retries instead of {self.allowed}, last at {self.at_ms}"


@dataclass(frozen=True, slots=True)
class StatusDifference:
    url: str
    expected: frozenset[int]
    found: int

    def __str__(self) -> str:
        return f"{self.url}: {self.found} instead of {' or '.join(map(str, sorted(self.expected)))}"


@dataclass(frozen=True, slots=True)
class DeepDive:
    """A host or PLD with too many fetches from infinite spaces; `url` was the first beyond the limit."""

    name: str
    urls: int
    allowed: int
    url: str
    at_ms: int

    def __str__(self) -> str:
        return f"{self.name}: {self.urls} URLs instead of {self.allowed}, the first too many {self.url} at {self.at_ms}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The findings. After a faultless crawl, every tuple named in `HEADINGS` is empty.

    `statuses` counts exchanges by status, `faults` incomplete answers by fault. `expected` is the number of required
    URLs; None if any set of pages was right.
    """

    requests: int
    robots_requests: int
    hosts: int
    statuses: tuple[tuple[int, int], ...]
    faults: tuple[tuple[str, int], ...]
    expected: int | None
    missing: tuple[str, ...]
    unexpected: tuple[BadFetch, ...]
    wrong_status: tuple[StatusDifference, ...]
    refetched: tuple[Refetch, ...]
    over_retried: tuple[OverRetry, ...]
    concurrent: tuple[ShortGap, ...]
    host_too_soon: tuple[ShortGap, ...]
    pld_concurrent: tuple[ShortGap, ...]
    pld_too_soon: tuple[ShortGap, ...]
    server_too_soon: tuple[ShortGap, ...]
    retry_after_ignored: tuple[ShortGap, ...]
    disallowed: tuple[BadFetch, ...]
    robots_not_first: tuple[BadFetch, ...]
    robots_stale: tuple[StaleFetch, ...]
    robots_refetched: tuple[ShortGap, ...]
    too_deep: tuple[DeepDive, ...]
    nofollowed: tuple[BadFetch, ...]

    @property
    def coverage(self) -> float:
        """The share of the expected URLs that were fetched; 1.0 if none were expected."""
        return 1 - len(self.missing) / self.expected if self.expected else 1.0

    @property
    def overlap(self) -> int:
        """The number of requests after the first for each URL, minus permitted retries."""
        again = sum(refetch.times - 1 for refetch in self.refetched)
        return again + sum(retried.retries - retried.allowed for retried in self.over_retried)

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(name for name in HEADINGS if getattr(self, name))

    @property
    def ok(self) -> bool:
        return not self.kinds

    def __str__(self) -> str:
        lines = [f"{self.requests} requests to {self.hosts} hosts, {self.robots_requests} of them for robots.txt"]
        outcomes = [*(f"{status}: {count}" for status, count in self.statuses), *(f"{w}: {n}" for w, n in self.faults)]
        lines.append(f"answers {', '.join(outcomes) or 'none'}")
        if self.expected is not None:
            lines.append(f"coverage {self.coverage:.4f} of {self.expected} URLs, overlap {self.overlap}")
        for name, heading in HEADINGS.items():
            found = getattr(self, name)
            if found:
                lines.append(f"{heading}: {len(found)}")
            lines += [f"    {item}" for item in found[:_SHOWN_MAX]]
            if len(found) > _SHOWN_MAX:
                lines.append(f"    and {len(found) - _SHOWN_MAX} more")
        lines.append("ok" if self.ok else "NOT ok")
        return "\n".join(lines)


def _span_text(exchange: Exchange) -> str:
    return f"{exchange.host}{exchange.target} ({exchange.start_ms} to {exchange.end_ms})"
