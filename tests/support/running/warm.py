"""Python commands that start warm: forks of one process of this run that has imported Scrapy, Twisted and bigcrawl.

A cold start costs a second of CPU before the first line of a crawl runs, and tests start hundreds. A fork is a
process as real: of its own session, killed by any signal, with the environment, working directory and files it was
given. Two things differ: its parent is the server, and all forks of it hash strings alike. A test to which that
matters uses `processes.spawn`. The workers of a run have one server, so that a run pays for the imports once.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tests.support.running.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SERVER = Path(__file__).with_name("warm_server.py")
_SHARED = "WARM_SERVER"  # the variable that says where it listens


def start(
    words: Sequence[str | os.PathLike[str]],
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start `python -m WORDS`, killed when the test run dies; the options are Popen's, and stdin may be a PIPE."""
    return _Warm([os.fspath(word) for word in words], stdin, stdout, stderr, cwd or Path.cwd(), env or os.environ)


def run(
    words: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run `python -m WORDS` to its end; what it wrote is returned as text."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = start(words, stdout=out, stderr=err, cwd=cwd, env=env)
        try:
            process.wait(timeout_s)
        finally:
            process.kill()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(process.args, process.returncode, out.read(), err.read())


class _Warm(subprocess.Popen[bytes]):
    """A fork of the server, which is its parent, waits for it and says here how it ended."""

    def __init__(
        self,
        words: list[str],
        stdin: int,
        stdout: int | IO[Any] | None,
        stderr: int | IO[Any] | None,
        cwd: Path,
        environment: Mapping[str, str],
    ) -> None:
        self.args = [sys.executable, "-m", *words]
        self.stdin = self.stdout = self.stderr = None
        self.returncode = None
        self._reading = threading.Lock()
        told = json.dumps({"words": words, "cwd": str(cwd), "environment": dict(environment)}).encode()
        status_fd, its_status_fd = os.pipe()
        mine = [its_status_fd]
        self._status = os.fdopen(status_fd, "rb", buffering=0)
        try:
            if stdin == subprocess.PIPE:
                its_input, write_fd = os.pipe()
                self.stdin = os.fdopen(write_fd, "wb")
            else:
                assert stdin == subprocess.DEVNULL
                its_input = os.open(os.devnull, os.O_RDONLY)
            mine.append(its_input)
            if stdout == subprocess.PIPE:
                read_fd, stdout = os.pipe()
                mine.append(stdout)
                self.stdout = os.fdopen(read_fd, "rb")
            _ask(told, [its_input, _fd(stdout, 1), _fd(stderr, 2), its_status_fd])
        finally:
            for fd in mine:
                os.close(fd)
        self.pid = self._number()

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._ended(timeout)
        if status is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return status

    def _ended(self, timeout_s: float | None) -> int | None:
        with self._reading:
            if self.returncode is None:
                ends = select.poll()
                ends.register(self._status, select.POLLIN)
                if ends.poll(None if timeout_s is None else timeout_s * 1000):
                    self.returncode = os.waitstatus_to_exitcode(self._number())
                    self._status.close()
            return self.returncode

    def _number(self) -> int:
        line = b""
        while not line.endswith(b"\n"):
            if not (byte := self._status.read(1)):
                raise RuntimeError("the server that forks commands is gone; what it wrote is in the test's stderr")
            line += byte
        return int(line)


def _fd(file: int | IO[Any] | None, inherited: int) -> int:
    return inherited if file is None else file if isinstance(file, int) else file.fileno()


def share() -> None:
    """Have this process, and those it starts from now on, fork from one server, which is killed when this one dies."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with listening:
        listening.bind("")  # the kernel chooses a name that is no file
        listening.listen(64)
        process = spawn([sys.executable, _SERVER, str(listening.fileno())], pass_fds=[listening.fileno()])
        os.environ[_SHARED] = listening.getsockname()[1:].decode()
    atexit.register(_end, process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


@functools.cache
def _server() -> socket.socket:
    """The connection of this process, which ends with it and ends all that was forked for it."""
    if _SHARED not in os.environ:
        share()
    mine = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    mine.connect(f"\0{os.environ[_SHARED]}")
    atexit.register(mine.close)
    return mine


_asking = threading.Lock()


def _ask(told: bytes, fds: list[int]) -> None:
    with _asking:
        socket.send_fds(_server(), [told], fds)
