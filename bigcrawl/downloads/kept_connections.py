"""Finds kept connections over which bytes have come since their last answer, or the connection's end.

Bytes beyond an answer would be read as the answer to the next request, and all later ones would be one behind. libcurl
checks for them once a second; here they are checked for before each request.
"""

from __future__ import annotations

import select
from typing import Final

KEPT_MAX: Final = 8_192


class KeptConnections:
    """The sockets of connections, by the server's address and the port on this side."""

    def __init__(self) -> None:
        self._sockets: dict[tuple[str, int], int] = {}

    def __repr__(self) -> str:
        return f"<KeptConnections {len(self._sockets)}>"

    def note(self, peer: str, port: int, socket: int) -> None:
        """Record an answer over a connection. The socket is -1 if it is closed."""
        if socket < 0:
            return
        self._sockets[peer, port] = socket
        if len(self._sockets) > KEPT_MAX:
            del self._sockets[next(iter(self._sockets))]

    def is_stale(self, peer: str, port: int) -> bool | None:
        """Whether a connection that is about to be used has something to read; None: it is new.

        Its socket may be another one's by now, which then costs a connection.
        """
        socket = self._sockets.pop((peer, port), -1)
        if socket < 0:
            return None
        poll = select.poll()
        poll.register(socket, select.POLLIN)
        return bool(poll.poll(0))
