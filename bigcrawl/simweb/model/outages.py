"""Outages: hosts that are down, that come and go, or that are overloaded at times.

Nothing is stored: whether a host is away follows from its number and the time. Host i has row i modulo `_PERIOD`, a
prime, so that every row meets every kind of robots.txt.
"""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import formatdate
from typing import Final

from bigcrawl.simweb.basics.answer import Answer, Fault
from bigcrawl.simweb.basics.hashing import mix
from bigcrawl.simweb.basics.markup import render_notice

_PERIOD: Final = 29


@dataclass(frozen=True, slots=True)
class Outage:
    """When a host is away, and what it answers then.

    Attributes:
        every_ms: the host is away for `away_ms` in every such period; if both are equal, it is never there.
        status: what the log shows for a request while the host is away.
        retry_after: "" for none, else "seconds" or "date".
        robots_too: whether robots.txt is away as well. Then the whole host is closed to a correct crawler, RFC 9309
            §2.3.1.4, until it finds robots.txt again.
        lesson: what a correct crawler does.
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
        """Whether the host is unreachable for the whole crawl."""
        return self.away_ms == self.every_ms

    def left_ms(self, host: int, at_ms: int) -> int:
        """Return how long the host will be away; 0 if it is there."""
        passed = (at_ms + mix(host)) % self.every_ms
        return max(0, self.away_ms - passed)

    def answer(self, left_ms: int, at_ms: int) -> Answer:
        """Return the host's answer while it is away."""
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
    """Return the outages of the host; None if it is always there."""
    return _OUTAGES.get(host % _PERIOD)
