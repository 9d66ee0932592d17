"""The embedded server: a Redis or Valkey that bigcrawl starts for a crawl if BIGCRAWL_REDIS_URL is unset.

Its directory, below the state directory, contains:

    start.lock     exclusive while a process starts or stops the server
    users.lock     shared by all processes that use the server, as long as they use it
    server.lock    exclusive, held by the server itself from the moment it is forked
    server.json    socket, process id, binary and version, for use when the socket does not answer
    server.log     the server's own log
    redis.sock     its only listener; in a private directory of the system's temp if this path would be too long
    appendonlydir  the data

How it works. All three locks are flocks, so the kernel releases them when their holder dies. The server inherits the
open server.lock and never touches it. So that lock is held exactly as long as a server may write to the directory,
whatever happens to the process that started it. A process starts a server only while it holds this lock, so there are
never two servers on the same data.

    server.lock   users.lock   what it means                    start()            leave()
    free          any          no server, or it was killed      starts it          nothing to do
    held          held         the crawl runs                   joins              leaves it running
    held          free         a killed crawl left it behind    joins (reclaims)   stops it

start.lock makes each row atomic. If one process starts while the last user leaves, it either joins first, and is then a
user, or waits until the server has ended and starts a new one.

After a crash: a killed server loses no data, and a crashed machine loses at most the last second. The server itself
cuts off a torn tail of its data. The next server replaces a stale socket on the same path, so clients only have to
reconnect. Lock files are never deleted, because two processes could then hold "the same" lock.

The server is started as a daemon by its own binary. It has no parent process, Ctrl-C does not reach it, and the process
that started it treats it like those that joined.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from bigcrawl.clock import SystemClock
from bigcrawl.exceptions import BigcrawlError, ConfigError, ContractError, TransientStoreError
from bigcrawl.private_files import make_private_directory
from bigcrawl.redisdb.server_binary import binary, find_binary
from bigcrawl.redisdb.server_state import (
    PING_MS_MAX,
    ServerRecord,
    ServerState,
    is_free,
    make_private,
    ping,
    start_ticks_of,
    try_lock,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl.clock import Clock

__all__ = ["EmbeddedServer", "binary"]

logger = logging.getLogger(__name__)

SOCKET_PATH_BYTES_MAX = 107  # Linux' sun_path has 108 bytes, the last one a NUL

SILENT_MS_MAX = 30_000  # for a live server that does not answer at all: stopped, swapped out, or hanging
LOADING_MS_MAX = 120_000  # for reading the AOF; a crawl's 128 MB take a few seconds
STOP_MS_MAX = 10_000  # for all of leave(): a crawl must end within 10 s of SIGTERM
START_LOCK_MS_MAX = LOADING_MS_MAX + SILENT_MS_MAX  # the longest that a start by another process may take
POLL_MS = 10

SERVER_OPTIONS = (
    # No TCP: the permissions of the socket's directory control access, and there is no port to conflict over.
    *("--port", "0"),
    *("--unixsocketperm", "600"),
    *("--daemonize", "yes"),
    # At most the last second is lost if the machine crashes, nothing if only the server does.
    *("--appendonly", "yes"),
    *("--appendfsync", "everysec"),
    *("--aof-load-truncated", "yes"),
    *("--save", ""),
    # The server may refuse a write, but it must never forget one.
    *("--maxmemory-policy", "noeviction"),
)


class EmbeddedServer:
    """The use of a directory's embedded server by one process.

    All methods block, for seconds while a large AOF is loaded, so call them in a thread. Any thread may call them, and
    any number of processes on this machine may use the same directory.

    Args:
        directory: used by nothing else; created if it is missing. It is on a local disk, or on one whose flocks work
            between machines. Only one machine can use it at a time.
        silent_ms_max: how long a live server may fail to answer before that is an error.
        clock: measures waiting times.
    """

    def __init__(self, directory: Path, *, silent_ms_max: int = SILENT_MS_MAX, clock: Clock | None = None) -> None:
        self._directory = Path(directory).absolute()
        self._silent_ms_max = silent_ms_max
        self._clock = clock or SystemClock()
        self._one_call = threading.Lock()
        self._leaving = threading.Event()
        self._users_fd: int | None = None
        self._socket: Path | None = None

    def __repr__(self) -> str:
        state = "not used" if self._users_fd is None else f"used at {self._socket}"
        return f"<EmbeddedServer {self._directory}: {state}>"

    @property
    def pid(self) -> int | None:
        """The server's process id; None if no server runs, or if it has not answered yet."""
        record = ServerRecord.read(self._directory)
        return record.live_pid() if record else None

    @property
    def log_path(self) -> Path:
        return self._directory / "server.log"

    def start(self) -> str:
        """Begin to use the server: join it if it runs, even if a killed crawl left it behind, or start it. Idempotent.

        Returns:
            A URL for redis-py. It stays the same until the last user has left.

        Raises:
            ConfigError: there is no binary, the directory cannot be used, or the server ended at once (damaged or
                foreign data, disk full). The message has the last lines of the server's log, and the log's path.
            TransientStoreError: a server runs but does not answer in time.
        """
        with self._one_call, self._disk_errors():
            make_private_directory(self._directory)
            self._directory.chmod(0o700)
            return self._bring_up()

    def ensure_running(self) -> str:
        """Start the server again on the same data and socket if it has ended. Cheap if it runs.

        Any user may call it at any time. If several do so at once, one starts the server and all wait for it.

        Raises:
            ContractError: called before `start()` or after `leave()`.
            ConfigError, TransientStoreError: as `start()`.
        """
        with self._one_call, self._disk_errors():
            if self._users_fd is None or self._socket is None:
                raise ContractError("ensure_running() was called before start() or after leave()")
            if ping(self._socket).state is ServerState.READY:
                return _url(self._socket)
            return self._bring_up()

    def leave(self, within_ms: int = STOP_MS_MAX) -> None:
        """Stop using the server. The last user shuts it down. Returns within `within_ms`; never raises for I/O.

        A server that does not end in time is left running rather than killed, because it may be writing. The next start
        joins it. Calls that wait in other threads end with TransientStoreError.
        """
        deadline_ms = self._clock.monotonic_ms() + within_ms
        self._leaving.set()  # a call in another thread that waits for the server gives up
        with self._one_call:
            self._leaving.clear()
            if self._users_fd is None:
                return
            try:
                with self._start_lock(deadline_ms):
                    self._drop_use()
                    self._stop_if_unused(deadline_ms)
            except (OSError, BigcrawlError) as error:
                logger.warning(
                    "The embedded server in %(directory)s is left running: %(error)s",
                    {"directory": self._directory, "error": error},
                )
            finally:
                self._drop_use()

    def stop_if_unused(self) -> bool:
        """Stop a server that a killed crawl left behind, without joining or starting one.

        Call it before deleting the directory.

        Returns:
            Whether no server runs any more. False if a process uses it.
        """
        if not self._directory.is_dir():
            return True
        deadline_ms = self._clock.monotonic_ms() + STOP_MS_MAX
        with self._one_call, self._disk_errors(), self._start_lock(deadline_ms):
            return self._stop_if_unused(deadline_ms)

    # Under start.lock from here on.

    def _bring_up(self) -> str:
        with self._start_lock(self._clock.monotonic_ms() + START_LOCK_MS_MAX):
            joined_now = self._users_fd is None
            if joined_now:
                self._users_fd = try_lock(self._directory / "users.lock", fcntl.LOCK_SH)
                if self._users_fd is None:  # only ever locked exclusively under start.lock
                    raise TransientStoreError(f"{self._directory / 'users.lock'} is locked by an unknown process")
            try:
                self._socket = self._start_or_join()
            except BaseException:
                if joined_now:  # after a failed start, this process does not use the server
                    self._drop_use()
                raise
        return _url(self._socket)

    def _start_or_join(self) -> Path:
        while True:
            server_lock = try_lock(self._directory / "server.lock", fcntl.LOCK_EX)
            record = ServerRecord.read(self._directory)
            if server_lock is None:
                socket_path = self._socket_path(record)
            else:
                try:
                    log_bytes = self.log_path.stat().st_size if self.log_path.exists() else 0
                    socket_path = self._launch(server_lock, record)
                finally:
                    os.close(server_lock)  # the server holds its own copy; if it did not start, the lock is free
            pid = self._await_answer(socket_path, joined=record if server_lock is None else None)
            if pid is not None:
                self._record_pid(socket_path, pid, joined=server_lock is None)
                return socket_path
            if server_lock is not None:
                raise self._ended_at_once(self._log_since(log_bytes))
            # The server that we joined has ended meanwhile, so its lock is free and we start one.

    def _launch(self, server_lock: int, record: ServerRecord | None) -> Path:
        found = find_binary()
        socket_path = self._socket_path(record)
        ServerRecord(  # written first, so that after a crash in between the socket's path is still known
            directory=str(self._directory),
            socket=str(socket_path),
            binary=str(found.path),
            version=found.version,
            machine=socket.gethostname(),
        ).write(self._directory)
        options = ("--unixsocket", socket_path, "--dir", self._directory, "--logfile", self.log_path)
        started = subprocess.run(
            [found.path, *SERVER_OPTIONS, *options],
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=(server_lock,),
            start_new_session=True,
            umask=0o077,
            timeout=self._silent_ms_max / 1000,
            check=False,
        )
        if started.returncode != 0:
            raise self._ended_at_once((started.stdout + started.stderr).decode("utf-8", "replace"))
        return socket_path

    def _await_answer(self, socket_path: Path, joined: ServerRecord | None) -> int | None:
        """Wait until the server answers, and return its process id; None if the server has ended."""
        started_ms = heard_ms = self._clock.monotonic_ms()
        while not self._is_gone():
            answer = ping(socket_path, min(PING_MS_MAX, self._silent_ms_max))
            if answer.state is ServerState.READY:
                return answer.pid
            now_ms = self._clock.monotonic_ms()
            if answer.state is ServerState.LOADING:
                heard_ms = now_ms
            elif joined and joined.machine != socket.gethostname():
                raise ConfigError(
                    f"the embedded server in {self._directory} runs on machine {joined.machine} and cannot be reached "
                    "from this one; set BIGCRAWL_REDIS_URL to a server that both can reach"
                )
            if now_ms - heard_ms > self._silent_ms_max or now_ms - started_ms > LOADING_MS_MAX:
                raise TransientStoreError(
                    f"the embedded server in {self._directory} (process {answer.pid or self.pid}) has not "
                    f"been ready for {(now_ms - started_ms) / 1000:.0f} s; see {self.log_path}"
                )
            self._pause()
        return None

    def _record_pid(self, socket_path: Path, pid: int, *, joined: bool) -> None:
        record = ServerRecord.read(self._directory)
        if record is None or record.live_pid() != pid:
            known = asdict(record) if record else {"binary": "", "version": ""}
            known |= {"directory": str(self._directory), "socket": str(socket_path)}
            known |= {"machine": socket.gethostname(), "pid": pid, "start_ticks": start_ticks_of(pid)}
            ServerRecord(**known).write(self._directory)
        logger.info(
            "%(verb)s the embedded server in %(directory)s, process %(pid)d",
            {"verb": "Joined" if joined else "Started", "directory": self._directory, "pid": pid},
        )

    def _stop_if_unused(self, deadline_ms: int) -> bool:
        sole_user = try_lock(self._directory / "users.lock", fcntl.LOCK_EX)
        if sole_user is None:
            return False
        try:
            return self._stop(deadline_ms)
        finally:
            os.close(sole_user)

    def _stop(self, deadline_ms: int) -> bool:
        record = ServerRecord.read(self._directory)
        socket_path = self._socket_path(record)
        if not self._is_gone():
            # The kernel knows which process listens on the socket, so that is more reliable than the record.
            pid = ping(socket_path).pid or (record.live_pid() if record else None)
            if pid:
                os.kill(pid, signal.SIGTERM)
            while not self._is_gone():
                if self._clock.monotonic_ms() > deadline_ms:
                    raise TransientStoreError(f"process {pid} does not end; see {self.log_path}")
                time.sleep(POLL_MS / 1000)
        if socket_path.parent != self._directory:
            with contextlib.suppress(OSError):
                socket_path.unlink(missing_ok=True)
                socket_path.parent.rmdir()
        return True

    def _is_gone(self) -> bool:
        """Whether no server, and no child of one, uses the data any more."""
        return is_free(self._directory / "server.lock")

    def _socket_path(self, record: ServerRecord | None) -> Path:
        """Return the path of the server's socket. It stays the same as long as there is a user."""
        beside_data = self._directory / "redis.sock"
        if len(os.fsencode(beside_data)) <= SOCKET_PATH_BYTES_MAX:
            return beside_data
        # If the directory was copied or moved, its record names another crawl's socket.
        if record and record.directory == str(self._directory) and make_private(Path(record.socket).parent):
            return Path(record.socket)
        for parent in (tempfile.gettempdir(), "/tmp"):  # noqa: S108 - mkdtemp makes a private one
            if len(os.fsencode(parent)) + len("/bigcrawl-12345678/redis.sock") <= SOCKET_PATH_BYTES_MAX:
                return Path(tempfile.mkdtemp(prefix="bigcrawl-", dir=parent)) / "redis.sock"
        raise ConfigError(f"no room for a socket: {beside_data} and {tempfile.gettempdir()} are too long")

    @contextlib.contextmanager
    def _start_lock(self, deadline_ms: int) -> Iterator[None]:
        path = self._directory / "start.lock"
        while (held := try_lock(path, fcntl.LOCK_EX)) is None:
            if self._clock.monotonic_ms() > deadline_ms:
                raise TransientStoreError(f"another process has held {path} for too long")
            self._pause()
        try:
            yield
        finally:
            os.close(held)

    def _pause(self) -> None:
        if self._leaving.wait(POLL_MS / 1000):
            raise TransientStoreError("the crawl ends, so it no longer waits for the embedded server")

    def _drop_use(self) -> None:
        if self._users_fd is not None:
            os.close(self._users_fd)
            self._users_fd = None

    @contextlib.contextmanager
    def _disk_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, subprocess.SubprocessError) as error:
            raise ConfigError(
                f"the embedded server cannot use {self._directory}: {error}; make it writable or set "
                f"BIGCRAWL_STATE_DIR (log: {self.log_path})"
            ) from error

    def _ended_at_once(self, output: str) -> ConfigError:
        # The last lines give the reason. Redis prefixes them with process, role and time.
        lines = [re.sub(r"^\d+:\w .*?\d:\d\d\.\d+ [#*-] ", "", line) for line in output.split("\n")]
        reason = " / ".join(line.strip() for line in lines[-5:] if line.strip()) or "it printed no reason"
        return ConfigError(
            f"the embedded server in {self._directory} ended at once: {reason[-500:]} (log: {self.log_path})"
        )

    def _log_since(self, start_bytes: int) -> str:
        """Return the last three warnings of this start, or its last three lines if it has no warnings."""
        try:
            with self.log_path.open("rb") as log:
                log.seek(start_bytes)
                lines = log.read().decode("utf-8", "replace").splitlines()
        except FileNotFoundError:
            return ""
        warnings = [line for line in lines if " # " in line and "overcommit" not in line]
        return "\n".join((warnings or lines)[-3:])


def _url(socket_path: Path) -> str:
    return f"unix://{quote(os.fspath(socket_path))}?db=0"


def running_url(directory: Path) -> str | None:
    """Return the URL of a directory's embedded server, without becoming its user; None if no server runs."""
    record = ServerRecord.read(Path(directory).absolute())
    if record is None or ping(Path(record.socket)).state is not ServerState.READY:
        return None
    return _url(Path(record.socket))
