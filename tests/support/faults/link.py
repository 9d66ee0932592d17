"""The network between one node and Redis: it loses replies, delivers requests late, refuses commands, is cut.

A proxy on a unix socket of its own that knows so much of Redis' protocol that it can tell commands apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

_PIECE = 1 << 16
# What the server itself is asked to answer in the place of a command that is refused: replies stay in order.
_REFUSAL = b"return redis.error_reply(ARGV[1])"


class FaultyLink:
    """Forwards to the server at `server`; `url` is what a node connects to. Used from any one thread.

    Args:
        seed: which commands are refused follows from it.
    """

    def __init__(self, server: Path, seed: int = 0) -> None:
        self._server = server
        self._rng = random.Random(seed)
        self._directory = Path(tempfile.mkdtemp(prefix="bigcrawl-test-"))
        self._path = self._directory / "link.sock"
        self.url = f"unix://{self._path}?db=0"
        self._refused_share, self._refusal = 0.0, b""
        self._is_losing = self._is_holding = False
        self._passages: set[_Passage] = set()
        self._late: list[_Passage] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="link")

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        shutil.rmtree(self._directory)

    def lead_to(self, server: Path) -> None:
        """Forward to another server from the next connection on."""
        self._do(lambda: setattr(self, "_server", server))

    def refuse(self, share: float, error: str) -> None:
        """Let this share of the script calls be answered by an error, each of them alone; 0 ends it."""
        self._do(lambda: self._set_refusal(share, error.encode()))

    def lose_replies(self) -> None:
        """Carry requests and drop what is answered, connection by connection, until `mend`."""
        self._do(lambda: setattr(self, "_is_losing", True))

    def hold_requests(self) -> None:
        """Keep what is sent from now on, until `hang_up`."""
        self._do(lambda: setattr(self, "_is_holding", True))

    def hang_up(self) -> None:
        """Cut the node off; it may connect anew. What was held waits for `deliver`, unheard by its sender."""
        self._do(self._hang_up)

    def deliver(self) -> int:
        """Let the server have what was held, late; return how many commands that were."""
        return self._do(self._deliver)

    def mend(self) -> None:
        """Work as a network should; what was held is delivered first."""
        self._do(self._mend)

    def _set_refusal(self, share: float, error: bytes) -> None:
        self._refused_share, self._refusal = share, error

    def _hang_up(self) -> None:
        self._is_holding = False
        for passage in [*self._passages]:
            if passage.held:
                self._late.append(passage)
            passage.hang_up()

    def _deliver(self) -> int:
        late, self._late = self._late, []
        return sum(passage.deliver() for passage in late)

    def _mend(self) -> None:
        if self._is_holding:
            self._hang_up()
        self._deliver()
        self._is_losing = False
        self._set_refusal(0, b"")

    async def _listen(self) -> None:
        self._listener = await asyncio.start_unix_server(self._serve, self._path)

    async def _end(self) -> None:
        self._listener.close()
        for passage in [*self._passages]:
            passage.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_server, to_server = await asyncio.open_unix_connection(self._server)
        except OSError:
            writer.close()
            return
        passage = _Passage(writer, to_server)
        self._passages.add(passage)
        with contextlib.suppress(OSError):
            await asyncio.gather(self._carry(reader, passage), self._answer(from_server, passage))
        passage.close()
        self._passages.discard(passage)

    async def _carry(self, reader: asyncio.StreamReader, passage: _Passage) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while command := await _read_command(reader):
                if self._is_holding or passage.held:
                    passage.held.append(command)
                    continue
                passage.to_server.write(self._passed(command))
                await passage.to_server.drain()
        if not passage.held:
            passage.close()

    async def _answer(self, from_server: asyncio.StreamReader, passage: _Passage) -> None:
        with contextlib.suppress(OSError):
            while piece := await from_server.read(_PIECE):
                if self._is_losing:
                    passage.close()
                elif not passage.to_node.is_closing():
                    passage.to_node.write(piece)
        passage.close()

    def _passed(self, command: bytes) -> bytes:
        is_call = b"\r\nEVALSHA\r\n" in command[:40]
        if not is_call or self._rng.random() >= self._refused_share:
            return command
        return _packed(b"EVAL", _REFUSAL, b"0", self._refusal)

    def _do(self, change: Callable[[], Any]) -> Any:
        async def done() -> Any:
            return change()

        return self._run(done())

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=60)


class _Passage:
    """One connection of the node and the server's end of it."""

    def __init__(self, to_node: asyncio.StreamWriter, to_server: asyncio.StreamWriter) -> None:
        self.to_node = to_node
        self.to_server = to_server
        self.held: list[bytes] = []

    def hang_up(self) -> None:
        self.to_node.close()
        if not self.held:
            self.to_server.close()

    def deliver(self) -> int:
        count = len(self.held)
        self.to_server.write(b"".join(self.held))
        self.to_server.write_eof()  # the server takes all of it and closes
        self.held.clear()
        return count

    def close(self) -> None:
        self.to_node.close()
        self.to_server.close()


async def _read_command(reader: asyncio.StreamReader) -> bytes:
    """The bytes of one command, as it was sent; empty at the end."""
    head = await reader.readline()
    if not head.endswith(b"\n"):
        return b""
    parts = [head]
    for _ in range(int(head[1:])):
        length = await reader.readuntil(b"\n")
        parts += length, await reader.readexactly(int(length[1:]) + 2)
    return b"".join(parts)


def _packed(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
