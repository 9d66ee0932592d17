"""Limits how many requests a connection serves, and how old it gets.

libcurl limits the age, but does not count requests. They are counted by host and port, so all connections to a server
share one count.
"""

from __future__ import annotations

from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

SERVERS_MAX: Final = 4_096
"""Servers counted. With more, the one used longest ago is dropped, and starts a new count."""


class ConnectionLimits:
    def __init__(
        self,
        requests_max: int,
        age_max_s: float,
        meet_limit: Callable[[str], None],
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._requests_max = requests_max
        self._age_max_s = age_max_s
        self._meet_limit = meet_limit
        self._now = now
        self._used: OrderedDict[str, tuple[int, float]] = OrderedDict()  # server -> requests, time of opening

    def __repr__(self) -> str:
        return f"<ConnectionLimits servers={len(self._used)}>"

    def is_last(self, netloc: str) -> bool:
        used = self._used.get(netloc)
        return (used[0] if used else 0) + 1 >= self._requests_max

    def note(self, netloc: str, *, is_last: bool, is_new: bool) -> None:
        used = self._used.pop(netloc, None)
        if is_new and used is not None and self._now() - used[1] > self._age_max_s:
            self._meet_limit("connection-age")
        if is_last:
            self._meet_limit("connection-requests")
            return
        self._used[netloc] = (1, self._now()) if is_new or used is None else (used[0] + 1, used[1])
        if len(self._used) > SERVERS_MAX:
            self._used.popitem(last=False)
