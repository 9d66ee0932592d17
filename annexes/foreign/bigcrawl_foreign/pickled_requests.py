"""Reads other crawlers' pickled requests, in a separate process, as they may kill it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final, Self

from bigcrawl.commands.moving.importing import ENTRY_BYTES_MAX
from bigcrawl.exceptions import BigcrawlError
from bigcrawl.scheduler.adapter.values.codec import NOT_STORABLE, PLAIN
from bigcrawl_foreign.unpickling import ENTRY_SECONDS, LENGTH, MEMORY_BYTES

if TYPE_CHECKING:
    from bigcrawl.commands.moving.importing import RequestSender
    from bigcrawl_foreign.fingerprint_set import FetchedPrints

_MODULE: Final = "bigcrawl_foreign.unpickling"
ANSWER_BYTES_MAX: Final = 16 << 20


class UnreadableError(BigcrawlError):
    pass


class PickledRequests:
    """Turns pickles, or JSON objects, into the dicts that `Request.to_dict` made. Use it in a `with` statement."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} process={self._process and self._process.pid}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_process()

    def read(self, data: bytes) -> dict[str, Any]:
        """Return the request in an entry, in 0.1 ms, or a second if the process must be started.

        Raises:
            UnreadableError: it holds something else, or reading it takes too much time or memory.
        """
        process = self._start_process()
        assert process.stdin is not None
        assert process.stdout is not None
        answer = b""
        try:
            process.stdin.write(LENGTH.pack(len(data)) + data)
            process.stdin.flush()
            head = process.stdout.read(LENGTH.size)
            if len(head) == LENGTH.size and (size := LENGTH.unpack(head)[0]) <= ANSWER_BYTES_MAX:
                answer = process.stdout.read(size)
        except OSError:
            pass  # it has ended
        if not answer:
            self._end_process()
            limits = f"{ENTRY_SECONDS} s and {MEMORY_BYTES >> 20} MB"
            raise UnreadableError(f"the process that read it was killed; its limits for an entry are {limits}")
        if not answer[0]:
            raise UnreadableError(answer[1:].decode("utf-8", "replace"))
        try:
            fields: dict[str, Any] = PLAIN.unpack(answer[1:])
        except NOT_STORABLE as error:
            raise UnreadableError(str(error)) from error
        return fields

    def _start_process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                close_fds=True,
            )
        return self._process

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # unread input is lost with the process
                    pipe.close()
        process.wait()


class StoredQueue(PickledRequests):
    """Imports the entries of a queue; `kind` is a prefix of the names that identify requests with `dont_filter`."""

    def __init__(self, kind: str, sender: RequestSender, fetched: FetchedPrints) -> None:
        super().__init__()
        self._kind = kind
        self._sender = sender
        self._fetched = fetched

    async def send_entry(self, where: str, entry: bytes | int) -> None:
        """Send an entry, or record that it is skipped. An integer is the size of an entry that is too large."""
        if isinstance(entry, int):
            self._sender.record_skipped(where, f"it has {entry:,} bytes; at most {ENTRY_BYTES_MAX:,} are allowed")
            return
        try:
            fields = await asyncio.to_thread(self.read, entry)
        except UnreadableError as error:
            self._sender.record_skipped(where, str(error))
            return
        name = f"{self._kind}:{hashlib.sha1(entry, usedforsecurity=False).hexdigest()}"
        await self._sender.send_request(where, fields, name)
        if not fields.get("dont_filter"):  # one that is left out has not been fetched either
            self._fetched.record_waiting(fields)
