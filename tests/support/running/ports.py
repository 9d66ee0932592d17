"""Ports that stay free between two uses."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

BELOW_THOSE_FOR_CONNECTIONS = range(15_000, 32_000)


def bind_lasting(sock: socket.socket, address: str = "127.0.0.1") -> int:
    """Bind to a free port that the system gives to nobody who asks for any: once `sock` is closed, it is free again."""
    for port in random.sample(BELOW_THOSE_FOR_CONNECTIONS, 1_000):
        with suppress(OSError):
            sock.bind((address, port))
            return port
    raise AssertionError("no port is free")
