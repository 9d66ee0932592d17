"""Hosts that are down, that come and go, and that are overloaded for a while.

Nothing is remembered: whether a host is away follows from its number and the time. Host i has row i modulo
`_PERIOD`, a prime, so that every row meets every kind of robots.txt.
"""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import formatdate
from typing import Final

from bigcrawl.simweb.basics.answer import Answer, Fault
from bigcrawl.simweb.basics.markup import render_notice
from bigcrawl.simweb.basics.mixing import mix

_PERIOD: Final = 29


@dataclass(frozen=True, slots=True)
class Weather:
    """When a host is away, and what it answers then.

    Attributes:
        every_ms: the host is away for `away_ms` of as many; the two are equal when it is never there.
        status: what the log says of a request while the host is away.
        retry_after: "" for none, else "seconds" or "date".
        robots_too: whether robots.txt is away as well; then all of the host is closed to a right crawler, RFC 9309
            §2.3.1.4, for as long as it takes this for true.
        lesson: what a right crawler does.
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
        """Whether the host is never there."""
        return self.away_ms == self.every_ms

    def left_ms(self, host: int, at_ms: int) -> int:
        """How long the host will be away; 0: it is there."""
        passed = (at_ms + mix(host)) % self.every_ms
        return max(0, self.away_ms - passed)

    def answer(self, left_ms: int, at_ms: int) -> Answer:
        """What the host answers while it is away."""
        headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html; charset=utf-8"),)
        # Rounded up, or a crawler that keeps to it would come too soon.
        if self.retry_after == "seconds":
            headers += (("Retry-After", str(-(-left_ms // 1000))),)
        elif self.retry_after == "date":
            headers += (("Retry-After", formatdate(-(-(at_ms + left_ms) // 1000), usegmt=True)),)
        return Answer(self.status, headers, render_notice(self.status), fault=self.fault)


_RETRY: Final = "waits, then asks again, and leaves the host alone meanwhile"
_WEATHERS: Final = {
    3: Weather("down", 1000, 1000, 503, "gives up on the host", fault=Fault.RESET, robots_too=True),
    7: Weather("silent", 1000, 1000, 503, "gives up on the host", fault=Fault.SILENT, robots_too=True),
    12: Weather("comes and goes", 30_000, 10_000, 503, "comes back later", fault=Fault.RESET, robots_too=True),
    17: Weather("storm", 20_000, 3_000, 503, _RETRY),
    20: Weather("storm with Retry-After", 20_000, 4_000, 503, _RETRY, retry_after="seconds"),
    24: Weather("limited", 15_000, 3_000, 429, _RETRY, retry_after="seconds"),
    27: Weather("limited until a date", 15_000, 4_000, 429, _RETRY, retry_after="date"),
}
WEATHERS: Final = tuple(_WEATHERS.values())


def weather_of(host: int) -> Weather | None:
    """The weather of the host; None: it is always there."""
    return _WEATHERS.get(host % _PERIOD)
