"""When a request came in, by the kernel: a server that waits for a core reads it late."""

from __future__ import annotations

import socket
import sys
import time

_LAST_DATA_RECV_AT = 52  # in tcp_info, in ms (tcp(7))
_TICK_MS = 10  # of the kernel, at most


def arrived_s(connection: socket.socket) -> float:
    """The second of the monotonic clock at which data last came in; at most 20 ms too late, and never too early."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_DATA_RECV_AT + 4)
    unread_ms = int.from_bytes(info[_LAST_DATA_RECV_AT:], sys.byteorder)
    return time.monotonic() - max(0, unread_ms - _TICK_MS) / 1000
