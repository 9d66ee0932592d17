"""Finds kept connections that have received bytes, or were closed by the server, since their last answer.

Bytes beyond an answer would be read as the answer to the next request, and then every request would get the answer to
the one before. libcurl checks for such bytes once a second; this module checks before each request.
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
        """Record the socket of a connection after an answer; -1 if the connection is closed."""
        if socket < 0:
            return
        self._sockets[peer, port] = socket
        if len(self._sockets) > KEPT_MAX:
            del self._sockets[next(iter(self._sockets))]

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
