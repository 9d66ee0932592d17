"""Reads pickled requests of others, in a process that may die of them."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import Any, Final, Self

from bigcrawl.commands.foreign.unpickling import ENTRY_SECONDS, LENGTH, MEMORY_BYTES
from bigcrawl.exceptions import BigcrawlError
from bigcrawl.scheduler.adapter.values.codec import NOT_STORABLE, PLAIN

_MODULE: Final = "bigcrawl.commands.foreign.unpickling"
ANSWER_BYTES_MAX: Final = 16 << 20


class UnreadableError(BigcrawlError):
    """An entry is no request that can be read here."""


class PickledRequests:
    """Turns pickles, or JSON objects, into the dicts that `Request.to_dict` made. Use it in a `with` statement."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"<PickledRequests process={self._process and self._process.pid}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def read(self, data: bytes) -> dict[str, Any]:
        """Return the request in an entry.

        Raises:
            UnreadableError: it holds something else, or reading it takes too much; says what.

        Cost: 0.1 ms, and a second for the first entry and for each one after one that ended the process.
        """
        process = self._started()
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
            self._end()
            limits = f"{ENTRY_SECONDS} s and {MEMORY_BYTES >> 20} MB"
            raise UnreadableError(f"reading it ended its process, which has {limits} for an entry")
        if not answer[0]:
            raise UnreadableError(answer[1:].decode("utf-8", "replace"))
        try:
            fields: dict[str, Any] = PLAIN.unpacked(answer[1:])
        except NOT_STORABLE as error:
            raise UnreadableError(str(error)) from error
        return fields

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                close_fds=True,
            )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what it did not read is lost with it
                    pipe.close()
        process.wait()
