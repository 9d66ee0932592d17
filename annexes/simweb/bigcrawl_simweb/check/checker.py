"""Checks from any server's log (also nginx's) that a crawl was complete, without repetition, and polite.

A server sees a request later and ends an answer sooner than the client, so a logged gap between an end and the next
start is never shorter than the client's. A gap between two starts can be, and a gap after an answer that the client
broke off: `tolerance_ms` covers both. If milliseconds cannot show the order, the crawler gets the benefit of the doubt.
"""

from __future__ import annotations

from array import array
from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from bigcrawl.exceptions import ContractError
from bigcrawl_simweb.basics.addresses import origin_of
from bigcrawl_simweb.basics.exchange import ABORTED_STATUS, Exchange
from bigcrawl_simweb.check.coverage import Coverage
from bigcrawl_simweb.check.findings import BadFetch, Report, ShortGap, StaleFetch
from bigcrawl_simweb.check.pacing import PaceCheck, RobotsCheck, SilenceCheck, StartGap
from bigcrawl_simweb.check.rules import CheckRules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

__all__ = ["ABORTED_STATUS", "CheckRules", "Checker", "Exchange", "Report", "check_exchanges"]


def check_exchanges(exchanges: Iterable[Exchange], rules: CheckRules) -> Report:
    checker = Checker(rules)
    for exchange in by_start(exchanges):
        checker.add(exchange)
    return checker.report()


class _HostChecks:
    __slots__ = ("is_unruled", "pace", "robots", "silence")

    def __init__(self, pace: PaceCheck) -> None:
        self.pace = pace
        self.robots: RobotsCheck | None = None
        self.silence: SilenceCheck | None = None
        self.is_unruled = False


class Checker:
    """Checks exchanges in order of start, at some microseconds each.

    Keeps every distinct target, the last exchanges of each host, PLD and server, and the findings.
    """

    def __init__(self, rules: CheckRules) -> None:
        self._rules = rules
        self._coverage = Coverage(rules)
        self._hosts: dict[str, _HostChecks] = {}
        self._plds: dict[str, PaceCheck] = {}
        self._servers: dict[str, StartGap] = {}
        self._statuses: Counter[int] = Counter()
        self._faults: Counter[str] = Counter()
        self._robots_requests = 0
        # Exchanges of the current millisecond, in any order.
        self._together: list[Exchange] = []
        self._now_ms = 0
        self._concurrent: list[ShortGap] = []
        self._host_too_soon: list[ShortGap] = []
        self._pld_concurrent: list[ShortGap] = []
        self._pld_too_soon: list[ShortGap] = []
        self._server_too_soon: list[ShortGap] = []
        self._retry_after_ignored: list[ShortGap] = []
        self._robots_not_first: list[BadFetch] = []
        self._robots_stale: list[StaleFetch] = []
        self._robots_refetched: list[ShortGap] = []

    def __repr__(self) -> str:
        return f"Checker({self._statuses.total()} exchanges, {len(self._hosts)} hosts)"

    def add(self, exchange: Exchange) -> None:
        """Add the next exchange; raise ContractError if it started before the previous one."""
        if exchange.start_ms != self._now_ms:
            if exchange.start_ms < self._now_ms:
                raise ContractError(f"exchange at {exchange.start_ms} comes after one at {self._now_ms}; use check()")
            self._check_millisecond()
            self._now_ms = exchange.start_ms
        self._together.append(exchange)

    def report(self) -> Report:
        """Return the findings so far. Later exchanges must start in a later millisecond."""
        self._check_millisecond()
        coverage = self._coverage
        return Report(
            requests=self._statuses.total(),
            robots_requests=self._robots_requests,
            hosts=len(self._hosts),
            statuses=tuple(sorted(self._statuses.items())),
            faults=tuple(sorted(self._faults.items())),
            expected=coverage.required(),
            missing=coverage.missing(),
            unexpected=tuple(coverage.unexpected),
            wrong_status=coverage.wrong_status(),
            refetched=coverage.refetched,
            over_retried=coverage.over_retried,
            concurrent=tuple(self._concurrent),
            host_too_soon=tuple(self._host_too_soon),
            pld_concurrent=tuple(self._pld_concurrent),
            pld_too_soon=tuple(self._pld_too_soon),
            server_too_soon=tuple(self._server_too_soon),
            retry_after_ignored=tuple(self._retry_after_ignored),
            disallowed=tuple(coverage.disallowed),
            robots_not_first=tuple(self._robots_not_first),
            robots_stale=tuple(self._robots_stale),
            robots_refetched=tuple(self._robots_refetched),
            too_deep=coverage.too_deep,
            nofollowed=tuple(coverage.nofollowed),
        )

    def _check_millisecond(self) -> None:
        """Check the exchanges of one millisecond in the order most favourable to the crawler."""
        together, self._together = self._together, []
        if len(together) > 1:
            together.sort(key=self._lenient_sort_key)
        for exchange in together:
            self._check_exchange(exchange)

    def _lenient_sort_key(self, exchange: Exchange) -> tuple[int, bool, bool]:
        until_ms = exchange.busy_until_ms(self._rules.tolerance_ms)
        return until_ms, not exchange.is_robots, not exchange.is_failure

    def _check_exchange(self, exchange: Exchange) -> None:
        self._statuses[exchange.status] += 1
        if exchange.is_faulty:
            self._faults[exchange.fault] += 1
        host = self._hosts.get(exchange.host)
        if host is None:
            host = self._hosts[exchange.host] = _HostChecks(self._host_pace(exchange.host))
        host.pace.add(exchange, self._concurrent, self._host_too_soon)
        self._check_neighbours(exchange)
        self._check_silence(host, exchange)
        self._check_robots(host, exchange)
        if not exchange.is_robots:
            self._coverage.add(exchange)

    def _host_pace(self, host: str) -> PaceCheck:
        rules = self._rules
        delay_ms = max(rules.host_delay_ms, rules.host_delays_ms.get(host, 0))
        return PaceCheck(host, rules.host_connections, delay_ms, rules.tolerance_ms)

    def _check_neighbours(self, exchange: Exchange) -> None:
        rules = self._rules
        if rules.pld_of is not None:
            pld = rules.pld_of(exchange.host)
            if (pace := self._plds.get(pld)) is None:
                pace = self._plds[pld] = PaceCheck(pld, rules.pld_connections, rules.pld_delay_ms, rules.tolerance_ms)
            pace.add(exchange, self._pld_concurrent, self._pld_too_soon)
        if rules.server_delay_ms:
            server = exchange.server or exchange.host
            if (gap := self._servers.get(server)) is None:
                gap = self._servers[server] = StartGap(server)
            gap.add(exchange, rules, self._server_too_soon)

    def _check_silence(self, host: _HostChecks, exchange: Exchange) -> None:
        if host.silence is None and exchange.wait_ms and self._rules.retry_after_max_ms:
            host.silence = SilenceCheck()
        if host.silence is not None:
            host.silence.add(exchange, self._rules, self._retry_after_ignored)

    def _check_robots(self, host: _HostChecks, exchange: Exchange) -> None:
        rules = self._rules
        if exchange.is_robots:
            self._robots_requests += 1
            if host.robots is None:
                host.robots = RobotsCheck()
            host.robots.add(exchange, rules, self._robots_refetched)
        elif rules.allows is not None:
            age_ms = None if host.robots is None else host.robots.age_ms(exchange.start_ms, rules.tolerance_ms)
            if age_ms is None:
                if not host.is_unruled:
                    self._robots_not_first.append(BadFetch(self._url_of(exchange), exchange.start_ms))
                host.is_unruled = True
            elif age_ms > rules.robots_max_age_ms + rules.tolerance_ms:
                self._robots_stale.append(StaleFetch(self._url_of(exchange), exchange.start_ms, age_ms))

    def _url_of(self, exchange: Exchange) -> str:
        return origin_of(exchange.host, self._rules.port) + exchange.target


_CHUNK: Final = 4096


class _StringColumn:
    """A column of strings that stores each distinct one once."""

    def __init__(self) -> None:
        self._numbers = array("i")
        self._number_of: dict[str, int] = {}
        self._words: list[str] = []

    def append(self, word: str) -> None:
        self._numbers.append(self._number_of.setdefault(word, len(self._number_of)))

    def at(self, rows: NDArray[np.int64]) -> list[str]:
        return [self._words[number] for number in np.asarray(self._numbers)[rows].tolist()]

    def end(self) -> None:
        self._words = list(self._number_of)
        self._number_of.clear()


def by_start(exchanges: Iterable[Exchange]) -> Iterator[Exchange]:
    """Yield exchanges by their start, stably. Cost: 56 bytes per exchange, and each distinct string."""
    starts, ends, statuses, waits = numbers = tuple(array("q") for _ in range(4))
    hosts, targets, servers, faults = columns = tuple(_StringColumn() for _ in range(4))
    for exchange in exchanges:
        starts.append(exchange.start_ms)
        ends.append(exchange.end_ms)
        statuses.append(exchange.status)
        waits.append(exchange.retry_after_ms)
        hosts.append(exchange.host)
        targets.append(exchange.target)
        servers.append(exchange.server)
        faults.append(exchange.fault)
    order = np.argsort(np.asarray(starts), kind="stable")
    for column in columns:
        column.end()
    for first in range(0, len(order), _CHUNK):
        rows = order[first : first + _CHUNK]
        start, end, status, wait = (np.asarray(values)[rows].tolist() for values in numbers)
        host, target, server, fault = (column.at(rows) for column in columns)
        yield from map(Exchange, start, end, host, target, status, server, fault, wait)
