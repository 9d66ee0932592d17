"""What is known of libcurl's connections besides what it knows itself.

libcurl limits their age, but does not count requests. They are counted by host and port, so all connections to a server
share one count.

Bytes beyond an answer would be read as the answer to the next request, and then every request would get the answer to
the one before. libcurl checks for such bytes once a second; this module checks before each request.
"""

from __future__ import annotations

import select
from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

SERVERS_MAX: Final = 4_096
"""Servers counted. With more, the one used longest ago is dropped, and starts a new count."""

KEPT_MAX: Final = 8_192


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

    def is_last(self, netloc: str) -> bool:
        used = self._used.get(netloc)
        return (used[0] if used else 0) + 1 >= self._requests_max

    def record_use(self, netloc: str, *, is_last: bool, is_new: bool) -> None:
        used = self._used.pop(netloc, None)
        if is_new and used is not None and self._now() - used[1] > self._age_max_s:
            self._meet_limit("connection-age")
        if is_last:
            self._meet_limit("connection-requests")
            return
        self._used[netloc] = (1, self._now()) if is_new or used is None else (used[0] + 1, used[1])
        if len(self._used) > SERVERS_MAX:
            self._used.popitem(last=False)


class KeptConnections:
    """The sockets of connections, by the server's address and the port on this side."""

    def __init__(self) -> None:
        self._sockets: OrderedDict[tuple[str, int], int] = OrderedDict()

    def __repr__(self) -> str:
        return f"<KeptConnections {len(self._sockets)}>"

    def record_socket(self, peer: str, port: int, socket: int) -> None:
        """Record the socket of a connection after an answer; -1 if the connection is closed."""
        if socket < 0:
            return
        self._sockets[peer, port] = socket
        if len(self._sockets) > KEPT_MAX:
            self._sockets.popitem(last=False)

    def is_stale(self, peer: str, port: int) -> bool | None:
        """Return whether a connection about to be used already has something to read; None if it is new.

        The recorded socket may belong to another connection by now. A wrong result then costs one connection.
        """
        socket = self._sockets.pop((peer, port), -1)
        if socket < 0:
            return None
        poll = select.poll()
        poll.register(socket, select.POLLIN)
        return bool(poll.poll(0))
