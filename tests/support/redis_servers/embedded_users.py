"""Other processes that use an embedded server, as other crawls of the same directory do."""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bigcrawl.redisdb.embedded import EmbeddedServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

# Forked from a small single-threaded server that has imported the module once: fast, and no fork of pytest.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["__main__", "tests.support.redis_servers.embedded_users"])


class OtherUser:
    """A process with an `EmbeddedServer`; `call` runs one of its methods over there."""

    def __init__(self, directory: Path) -> None:
        self._calls, theirs = _context.Pipe()
        self._process = _context.Process(target=_serve, args=(directory, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._calls.close()

    def call(self, method: str) -> object:
        """Return what the method returned, or raise what it raised."""
        self.ask(method)
        return self.answer()

    def ask(self, method: str) -> None:
        self._calls.send(method)

    def answer(self) -> object:
        assert self._calls.poll(20), "the other process does not answer"
        answer = self._calls.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def kill(self) -> None:
        """End the process as kill -9 does."""
        self._process.kill()
        self._process.join(20)


def _serve(directory: Path, calls: Connection) -> None:
    server = EmbeddedServer(directory)
    with contextlib.suppress(EOFError):  # the test run ended, and so does this process
        while True:
            try:
                answer = getattr(server, calls.recv())()
            except EOFError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the test that asked is told
                answer = error
            calls.send(answer)


def in_threads(*calls: Callable[[], object]) -> list[object]:
    """Call all at the same moment, each in a thread of its own; return their results in order."""
    gate = threading.Barrier(len(calls))
    results: list[object] = [None] * len(calls)

    def run(index: int) -> None:
        gate.wait(20)
        results[index] = calls[index]()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return results


def servers_in(directory: Path) -> list[int]:
    """The ids of all processes whose working directory this is: the servers on its data."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended, or is not ours to look into
            if (process / "cwd").readlink() == directory.resolve():
                found.append(int(process.name))
    return found
