"""Checks that a host's robots.txt was received and fresh when its pages were requested.

A robots.txt counts if its answer is complete and not a 5xx: RFC 9309 takes a 4xx as "no rules", and the target of a 3xx
may be in another log. An answer that the client broke off counts, because crawlers need not read all of a long file. A
failed answer extends the life of the previous one (RFC 9309 §2.4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl_simweb.basics.exchange import ABORTED_STATUS
from bigcrawl_simweb.check.findings import ShortGap

if TYPE_CHECKING:
    from bigcrawl_simweb.basics.exchange import Exchange
    from bigcrawl_simweb.check.rules import CheckRules


class RobotsCheck:
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
