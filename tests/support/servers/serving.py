"""A server of the standard library, at work in a thread for as long as a test needs it."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import socketserver
    from collections.abc import Iterator

    Server = TypeVar("Server", bound=socketserver.BaseServer)


@contextmanager
def at_work(server: Server) -> Iterator[Server]:
    """Let it answer; closed, and its thread gone, at the end."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
