"""What can be seen of an embedded server from outside: its locks, its answer, its record."""

from __future__ import annotations

import contextlib
import enum
import fcntl
import json
import os
import socket
import stat
import struct
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from bigcrawl.private_files import opener

PING_MS_MAX = 250  # one PING; a live server answers within a millisecond, a busy one is asked again


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """server.json: what is known of the server when its socket does not answer.

    `pid` is None from just before a server is started until it answers; `start_ticks` tells it from a
    later process with the same number. Nothing is decided by a record that a power loss has torn: it is
    then as good as absent.
    """

    directory: str
    socket: str
    binary: str
    version: str
    machine: str
    pid: int | None = None
    start_ticks: int | None = None

    @classmethod
    def read(cls, directory: Path) -> ServerRecord | None:
        try:
            return cls(**json.loads((directory / "server.json").read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, directory: Path) -> None:
        temporary = directory / "server.json.tmp"
        with open(temporary, "w", encoding="utf-8", opener=opener) as file:
            file.write(json.dumps(asdict(self), indent=1) + "\n")
        temporary.replace(directory / "server.json")

    def live_pid(self) -> int | None:
        """The recorded process id, or None when that process is gone or another has its number."""
        if self.pid is None or self.start_ticks is None or start_ticks_of(self.pid) != self.start_ticks:
            return None
        return self.pid


class State(enum.Enum):
    READY = enum.auto()
    LOADING = enum.auto()
    SILENT = enum.auto()


class Answer(NamedTuple):
    state: State
    pid: int  # of the process that listens, 0 when nobody does or it cannot be told


def ping(path: Path, timeout_ms: int = PING_MS_MAX) -> Answer:
    """Ask whoever listens on the socket whether it is ready; silence is an answer after `timeout_ms`."""
    pid = 0
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_ms / 1000)
            connection.connect(os.fspath(path))
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            pid = struct.unpack("3i", credentials)[0]
            connection.sendall(b"*1\r\n$4\r\nPING\r\n")
            reply = b""
            while not reply.endswith(b"\r\n"):
                received = connection.recv(512)
                if not received:
                    return Answer(State.SILENT, pid)
                reply += received
    except OSError:
        return Answer(State.SILENT, pid)
    # Any other error (a disk it cannot write to, a script that runs long) is an answer all the same.
    return Answer(State.LOADING if reply.startswith(b"-LOADING") else State.READY, pid)


def try_lock(path: Path, kind: int) -> int | None:
    """Return a descriptor that holds the flock until it is closed, or None when another holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock at this moment."""
    descriptor = try_lock(path, fcntl.LOCK_EX)
    if descriptor is None:
        return False
    os.close(descriptor)
    return True


def make_private(directory: Path) -> bool:
    """Make the directory, or find it there as ours alone; False when it can be neither."""
    try:
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=0o700)
        found = directory.lstat()
    except OSError:
        return False
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    return private and found.st_uid == os.geteuid()


def start_ticks_of(pid: int) -> int | None:
    """When the process was started, in clock ticks since boot; None when it has ended."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2]
    except OSError:
        return None
    fields = after_name.split()  # proc(5), from field 3, the state, on
    # Where process 1 does not reap, as in some containers, an ended process stays listed.
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
