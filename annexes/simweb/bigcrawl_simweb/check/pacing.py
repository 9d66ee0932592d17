"""Checks the gaps between requests to a host, PLD or server, and that a fresh robots.txt came first."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from bigcrawl_simweb.basics.exchange import ABORTED_STATUS
from bigcrawl_simweb.check.findings import ShortGap

if TYPE_CHECKING:
    from bigcrawl_simweb.basics.exchange import Exchange
    from bigcrawl_simweb.check.rules import CheckRules


class PaceCheck:
    """Checks a maximum of open exchanges and a delay: from end to start, or with several open, between starts."""

    __slots__ = ("_busy", "_connections", "_delay_ms", "_latest", "_name", "_number", "_tolerance_ms")

    def __init__(self, name: str, connections: int, delay_ms: int, tolerance_ms: int) -> None:
        self._name = name
        self._connections = connections
        self._delay_ms = delay_ms
        self._tolerance_ms = tolerance_ms
        # The exchanges that end last, one for each connection. The number breaks ties.
        self._busy: list[tuple[int, int, Exchange]] = []
        self._number = 0
        self._latest: Exchange | None = None

    def add(self, exchange: Exchange, concurrent: list[ShortGap], too_soon: list[ShortGap]) -> None:
        """Add the next exchange, and append at most one finding."""
        start_ms, earlier = exchange.start_ms, self._latest
        if len(self._busy) == self._connections:
            until_ms, _, first = self._busy[0]
            if start_ms < until_ms:
                concurrent.append(ShortGap(self._name, first, exchange, start_ms - first.end_ms, 0))
                earlier = None
            elif self._connections == 1:
                earlier = first
        if earlier is not None:
            gap_ms = start_ms - (earlier.end_ms if self._connections == 1 else earlier.start_ms)
            if gap_ms < self._delay_ms - self._tolerance_ms:
                too_soon.append(ShortGap(self._name, earlier, exchange, gap_ms, self._delay_ms))
        self._open_exchange(exchange)

    def _open_exchange(self, exchange: Exchange) -> None:
        self._latest = exchange
        self._number += 1
        entry = (exchange.busy_until_ms(self._tolerance_ms), self._number, exchange)
        if len(self._busy) < self._connections:
            heapq.heappush(self._busy, entry)
        else:
            heapq.heappushpop(self._busy, entry)


class StartGap:
    __slots__ = ("_latest", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._latest: Exchange | None = None

    def add(self, exchange: Exchange, rules: CheckRules, too_soon: list[ShortGap]) -> None:
        earlier, self._latest = self._latest, exchange
        if earlier is None:
            return
        gap_ms = exchange.start_ms - earlier.start_ms
        if gap_ms < rules.server_delay_ms - rules.tolerance_ms:
            too_soon.append(ShortGap(self._name, earlier, exchange, gap_ms, rules.server_delay_ms))


class SilenceCheck:
    """The times for which Retry-After forbids requests to a host."""

    __slots__ = ("_asked", "_asked_until_ms", "_coming", "_number")

    def __init__(self) -> None:
        self._asked: Exchange | None = None
        self._asked_until_ms = 0
        # Unfinished answers with Retry-After; requests before their end cannot know about it.
        self._coming: list[tuple[int, int, Exchange]] = []
        self._number = 0

    def add(self, exchange: Exchange, rules: CheckRules, ignored: list[ShortGap]) -> None:
        start_ms = exchange.start_ms
        while self._coming and self._coming[0][0] <= start_ms:
            self._begin_silence(heapq.heappop(self._coming)[2], rules)
        if self._asked is not None and start_ms < self._asked_until_ms - rules.tolerance_ms:
            gap_ms, wanted_ms = start_ms - self._asked.end_ms, self._asked_until_ms - self._asked.end_ms
            ignored.append(ShortGap(exchange.host, self._asked, exchange, gap_ms, wanted_ms))
        if exchange.wait_ms:
            # With several connections, the next request may have been in flight when the answer came.
            slack_ms = 0 if rules.host_connections == 1 else rules.tolerance_ms + 1
            self._number += 1
            heapq.heappush(self._coming, (exchange.end_ms + slack_ms, self._number, exchange))

    def _begin_silence(self, exchange: Exchange, rules: CheckRules) -> None:
        until_ms = exchange.end_ms + min(exchange.wait_ms, rules.retry_after_max_ms)
        if until_ms > self._asked_until_ms:
            self._asked, self._asked_until_ms = exchange, until_ms


class RobotsCheck:
    """Checks one host. A robots.txt counts if its answer is complete and not a 5xx.

    RFC 9309 takes a 4xx as "no rules", and the target of a 3xx may be in another log. An answer that the client broke
    off counts, because crawlers need not read all of a long file. A failed answer extends the life of the previous one
    (RFC 9309 §2.4).
    """

    __slots__ = ("_coming", "_is_received", "_kept", "_renewed_ms")

    def __init__(self) -> None:
        self._is_received = False
        # When it was last received or failed.
        self._renewed_ms = 0
        self._kept: Exchange | None = None
        self._coming: list[Exchange] = []

    def add(self, exchange: Exchange, rules: CheckRules, refetched: list[ShortGap]) -> None:
        if self._kept is not None:
            gap_ms = exchange.start_ms - self._kept.end_ms
            if gap_ms < rules.robots_period_ms - rules.tolerance_ms:
                refetched.append(ShortGap(exchange.host, self._kept, exchange, gap_ms, rules.robots_period_ms))
        if not exchange.is_failure and exchange.status != ABORTED_STATUS:
            self._kept = exchange
        self._coming.append(exchange)

    def age_ms(self, start_ms: int, tolerance_ms: int) -> int | None:
        """Return the age of the robots.txt for a page requested at `start_ms`; None if there was none."""
        if self._coming:
            self._take_arrived(start_ms, tolerance_ms)
        return start_ms - self._renewed_ms if self._is_received else None

    def _take_arrived(self, start_ms: int, tolerance_ms: int) -> None:
        coming, self._coming = self._coming, []
        for exchange in coming:
            if exchange.busy_until_ms(tolerance_ms) > start_ms:
                self._coming.append(exchange)
                continue
            self._renewed_ms = max(self._renewed_ms, exchange.end_ms)
            if exchange.status < 500 and not exchange.is_faulty:
                self._is_received = True
