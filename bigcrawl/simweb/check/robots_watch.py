"""Was a host's robots.txt there, and fresh, when its pages were asked for? Exchanges are given in order of start.

A robots.txt is received by an answer that came whole and is no 5xx: RFC 9309 takes a 4xx for "no rules", and
where a 3xx leads need not be in this log. It counts from its end. One that the client broke off counts too, for
crawlers read no more than they must of a long one, but it may be asked for again at once: they are killed, too.
One that failed is none; but it lets its elder be used for longer, as RFC 9309 §2.4 does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.simweb.basics.exchange import ABORTED_STATUS
from bigcrawl.simweb.check.findings import Gap

if TYPE_CHECKING:
    from bigcrawl.simweb.basics.exchange import Exchange
    from bigcrawl.simweb.check.rules import Rules


class RobotsWatch:
    """The robots.txt of one host, by what the log says of it."""

    __slots__ = ("_coming", "_is_received", "_kept", "_renewed_ms")

    def __init__(self) -> None:
        self._is_received = False
        # The last time that it was received or failed to be.
        self._renewed_ms = 0
        self._kept: Exchange | None = None
        self._coming: list[Exchange] = []

    def add(self, exchange: Exchange, rules: Rules, refetched: list[Gap]) -> None:
        """Take the next exchange of robots.txt; append it if the last one was still good."""
        if self._kept is not None:
            gap_ms = exchange.start_ms - self._kept.end_ms
            if gap_ms < rules.robots_period_ms - rules.tolerance_ms:
                refetched.append(Gap(exchange.host, self._kept, exchange, gap_ms, rules.robots_period_ms))
        if not exchange.is_failure and exchange.status != ABORTED_STATUS:
            self._kept = exchange
        self._coming.append(exchange)

    def age_ms(self, start_ms: int, tolerance_ms: int) -> int | None:
        """How old the robots.txt is by which a page is asked for at `start_ms`; None: none was received."""
        if self._coming:
            self._arrive(start_ms, tolerance_ms)
        return start_ms - self._renewed_ms if self._is_received else None

    def _arrive(self, start_ms: int, tolerance_ms: int) -> None:
        coming, self._coming = self._coming, []
        for exchange in coming:
            if exchange.busy_until_ms(tolerance_ms) > start_ms:
                self._coming.append(exchange)
                continue
            self._renewed_ms = max(self._renewed_ms, exchange.end_ms)
            if exchange.status < 500 and not exchange.is_faulty:
                self._is_received = True
