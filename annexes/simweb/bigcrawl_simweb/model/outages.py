"""Outages: hosts that are down, intermittent or overloaded, as a function of host and time.

Host i has row i modulo `_PERIOD`, a prime, so that every row meets every kind of robots.txt.
"""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import formatdate
from typing import Final

from bigcrawl_simweb.basics.answer import Answer, Fault
from bigcrawl_simweb.basics.markup import render_notice
from bigcrawl_simweb.basics.power_law import mix_bits

_PERIOD: Final = 29


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
