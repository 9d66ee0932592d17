"""Was the crawl complete, without repetition, and polite? Asked of the log of the server it fetched from.

Any server's log will do (nginx's as well as simweb's): the checker takes exchanges, and rules to hold them
to. A server sees a request later and ends an answer sooner than the client does, so the gaps it logs between
an end and the next start are never shorter than those the client kept. Gaps between two starts can be, when
the first request was slower to arrive than the second: `tolerance_ms` is for that.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from bigcrawl.simweb.addresses import origin_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

ROBOTS_TARGET: Final = "/robots.txt"
# The client went away before it had the answer; nginx logs the same number.
ABORTED_STATUS: Final = 499
_TOO_MANY_REQUESTS: Final = 429
_SHOWN_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer, as a server saw them.

    Attributes:
        start_ms: when the request had arrived. Rounded down, like `end_ms`: gaps are then never understated.
        end_ms: when the last bytes of the answer were handed to the kernel.
        host: what the host delay is kept for, without scheme and port.
        server: what the server gap is kept for, an address; empty: the host is its own server.
    """

    start_ms: int
    end_ms: int
    host: str
    target: str
    status: int
    server: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a crawl is held to; each default asks for nothing.

    Attributes:
        expected: status by canonical URL, of all that should be fetched; None: any set of pages is right.
        port: the port of the URLs in `expected`.
        host_delay_ms: least time between the end of one exchange of a host and the start of its next.
        host_delays_ms: larger delays of single hosts, such as their Crawl-delay.
        server_delay_ms: least time between two starts at one server.
        tolerance_ms: by how much a gap may fall short of its delay.
        retries: how often a URL may be asked for again after answers of 429 or 5xx.
        allows: whether host and target may be fetched; None: robots.txt plays no part.
    """

    expected: Mapping[str, int] | None = None
    port: int = 80
    host_delay_ms: int = 0
    host_delays_ms: Mapping[str, int] = field(default_factory=dict)
    server_delay_ms: int = 0
    tolerance_ms: int = 0
    retries: int = 0
    allows: Callable[[str, str], bool] | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """Two neighbours in time that are too close; a negative `gap_ms` says by how much they overlap."""

    name: str
    earlier: Exchange
    later: Exchange
    gap_ms: int
    wanted_ms: int

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.gap_ms} ms instead of {self.wanted_ms} ms between {self.earlier.target} "
            f"and {self.later.target} at {self.later.start_ms}"
        )


@dataclass(frozen=True, slots=True)
class Refetch:
    """A URL that was asked for `times` times."""

    url: str
    times: int

    def __str__(self) -> str:
        return f"{self.url}: {self.times} times"


@dataclass(frozen=True, slots=True)
class StatusDifference:
    """A URL that answered otherwise than expected."""

    url: str
    expected: int
    found: int

    def __str__(self) -> str:
        return f"{self.url}: {self.found} instead of {self.expected}"


@dataclass(frozen=True, slots=True)
class Report:
    """What the checker found; every tuple is empty after a crawl without fault."""

    requests: int
    robots_requests: int
    hosts: int
    expected: int | None
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    wrong_status: tuple[StatusDifference, ...]
    refetched: tuple[Refetch, ...]
    concurrent: tuple[Gap, ...]
    host_too_soon: tuple[Gap, ...]
    server_too_soon: tuple[Gap, ...]
    disallowed: tuple[str, ...]
    robots_not_first: tuple[str, ...]

    @property
    def coverage(self) -> float:
        """The share of the expected URLs that were fetched; 1.0 when none were expected."""
        return 1 - len(self.missing) / self.expected if self.expected else 1.0

    @property
    def overlap(self) -> int:
        """Requests too many: for each URL those after the first, retries that the rules allow apart."""
        return sum(refetch.times - 1 for refetch in self.refetched)

    @property
    def ok(self) -> bool:
        """Whether no rule was broken."""
        return not any(found for _, found in self._findings())

    def __str__(self) -> str:
        lines = [f"{self.requests} requests to {self.hosts} hosts, {self.robots_requests} of them for robots.txt"]
        if self.expected is not None:
            lines.append(f"coverage {self.coverage:.4f} of {self.expected} URLs, overlap {self.overlap}")
        for heading, found in self._findings():
            lines.append(f"{heading}: {len(found)}")
            lines += [f"    {item}" for item in found[:_SHOWN_MAX]]
            if len(found) > _SHOWN_MAX:
                lines.append(f"    and {len(found) - _SHOWN_MAX} more")
        lines.append("ok" if self.ok else "NOT ok")
        return "\n".join(lines)

    def _findings(self) -> list[tuple[str, tuple[object, ...]]]:
        return [
            ("not fetched", self.missing),
            ("fetched, but not expected", self.unexpected),
            ("other status than expected", self.wrong_status),
            ("fetched more than once", self.refetched),
            ("two requests to one host at once", self.concurrent),
            ("host delay not kept", self.host_too_soon),
            ("server gap not kept", self.server_too_soon),
            ("forbidden by robots.txt", self.disallowed),
            ("robots.txt not asked for first", self.robots_not_first),
        ]


def check(exchanges: Iterable[Exchange], rules: Rules) -> Report:
    """Hold a server's log, in any order, to the rules.

    Cost: the exchanges are sorted in memory.
    """
    by_host: defaultdict[str, list[Exchange]] = defaultdict(list)
    by_server: defaultdict[str, list[Exchange]] = defaultdict(list)
    by_url: defaultdict[str, list[int]] = defaultdict(list)
    log = sorted(exchanges, key=_in_time)
    for exchange in log:
        by_host[exchange.host].append(exchange)
        by_server[exchange.server or exchange.host].append(exchange)
        if exchange.target != ROBOTS_TARGET:
            by_url[origin_of(exchange.host, rules.port) + exchange.target].append(exchange.status)
    concurrent, host_too_soon = _host_gaps(by_host, rules)
    missing, unexpected, wrong_status = _coverage(by_url, rules.expected)
    return Report(
        requests=len(log),
        robots_requests=sum(exchange.target == ROBOTS_TARGET for exchange in log),
        hosts=len(by_host),
        expected=None if rules.expected is None else len(rules.expected),
        missing=missing,
        unexpected=unexpected,
        wrong_status=wrong_status,
        refetched=_refetched(by_url, rules.retries),
        concurrent=concurrent,
        host_too_soon=host_too_soon,
        server_too_soon=_server_gaps(by_server, rules),
        disallowed=_disallowed(log, rules),
        robots_not_first=_robots_not_first(by_host, rules),
    )


def _in_time(exchange: Exchange) -> tuple[int, int, bool]:
    """Order of start; of two in the same millisecond, robots.txt is taken to be the first."""
    return exchange.start_ms, exchange.end_ms, exchange.target != ROBOTS_TARGET


def _host_gaps(by_host: Mapping[str, list[Exchange]], rules: Rules) -> tuple[tuple[Gap, ...], tuple[Gap, ...]]:
    """Neighbours that overlap, and neighbours whose gap is too small; a pair is never in both."""
    concurrent, too_soon = [], []
    for host, exchanges in by_host.items():
        wanted_ms = max(rules.host_delay_ms, rules.host_delays_ms.get(host, 0))
        latest = exchanges[0]
        for exchange in exchanges[1:]:
            gap_ms = exchange.start_ms - latest.end_ms
            gap = Gap(host, latest, exchange, gap_ms, wanted_ms)
            if gap_ms < 0:
                concurrent.append(gap)
            elif gap_ms < wanted_ms - rules.tolerance_ms:
                too_soon.append(gap)
            # A short exchange inside a long one does not end the long one.
            latest = max(latest, exchange, key=lambda ended: ended.end_ms)
    return tuple(concurrent), tuple(too_soon)


def _server_gaps(by_server: Mapping[str, list[Exchange]], rules: Rules) -> tuple[Gap, ...]:
    wanted_ms = rules.server_delay_ms
    return tuple(
        Gap(server, earlier, later, later.start_ms - earlier.start_ms, wanted_ms)
        for server, exchanges in by_server.items()
        for earlier, later in pairwise(exchanges)
        if later.start_ms - earlier.start_ms < wanted_ms - rules.tolerance_ms
    )


def _coverage(
    by_url: Mapping[str, list[int]], expected: Mapping[str, int] | None
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[StatusDifference, ...]]:
    """What was not fetched, what should not have been, and what answered otherwise."""
    if expected is None:
        return (), (), ()
    answers = {url: [status for status in by_url[url] if status != ABORTED_STATUS] for url in by_url}
    return (
        tuple(sorted(url for url in expected if not answers.get(url))),
        tuple(sorted(by_url.keys() - expected.keys())),
        tuple(
            StatusDifference(url, status, answers[url][-1])
            for url, status in expected.items()
            if answers.get(url) and answers[url][-1] != status
        ),
    )


def _refetched(by_url: Mapping[str, list[int]], retries: int) -> tuple[Refetch, ...]:
    found = []
    for url, statuses in by_url.items():
        failures = sum(status == _TOO_MANY_REQUESTS or status >= 500 for status in statuses[:-1])
        times = len(statuses) - min(retries, failures)
        if times > 1:
            found.append(Refetch(url, times))
    return tuple(found)


def _disallowed(log: list[Exchange], rules: Rules) -> tuple[str, ...]:
    if rules.allows is None:
        return ()
    return tuple(
        origin_of(exchange.host, rules.port) + exchange.target
        for exchange in log
        if exchange.target != ROBOTS_TARGET and not rules.allows(exchange.host, exchange.target)
    )


def _robots_not_first(by_host: Mapping[str, list[Exchange]], rules: Rules) -> tuple[str, ...]:
    if rules.allows is None:
        return ()
    return tuple(host for host, exchanges in by_host.items() if exchanges[0].target != ROBOTS_TARGET)
