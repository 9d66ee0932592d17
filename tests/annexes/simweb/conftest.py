"""A server of a simulated web inside the test process, and a crawler that is no part of bigcrawl."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from bigcrawl_simweb.serve.access_log import AccessLog, LogLine, read_log
from bigcrawl_simweb.serve.listen import open_listeners
from bigcrawl_simweb.serve.server import SimServer

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bigcrawl_simweb.model.web import Web


@dataclass
class Served:
    """A web that is being served, and its log once `stop` has been called."""

    web: Web
    port: int
    log: Path
    stop: Callable[[], None]

    def stopped_log(self) -> list[LogLine]:
        self.stop()
        return list(read_log(self.log))


@contextmanager
def served(web: Web, log_path: Path, device: str, tls: ssl.SSLContext | None = None) -> Iterator[Served]:
    sockets = open_listeners(list(web.addresses()), 0, device)
    log = AccessLog(log_path)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def begin() -> SimServer:
        server = SimServer(web, sockets, log, tls)
        await server.start()
        return server

    server = asyncio.run_coroutine_threadsafe(begin(), loop).result()
    stack = ExitStack()
    stack.callback(log.close)
    stack.callback(loop.close)
    stack.callback(thread.join)
    stack.callback(lambda: loop.call_soon_threadsafe(loop.stop))
    stack.callback(lambda: asyncio.run_coroutine_threadsafe(server.stop(), loop).result())
    with stack:
        yield Served(web, server.port, log_path, stack.close)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Serve a web on addresses of its own, one socket each."""
    with ExitStack() as stack:
        # A device that does not exist: the way of systems where a socket cannot be tied to one.
        yield lambda web, device="no-such-device", tls=None: stack.enter_context(
            served(web, tmp_path / "access.log", device, tls)
        )
