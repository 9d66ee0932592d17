"""The embedded server: a Redis or Valkey that bigcrawl starts for a crawl if BIGCRAWL_REDIS_URL is unset.

    start.lock     exclusive while a process starts or stops the server
    users.lock     shared by all processes that use the server, as long as they use it
    server.lock    exclusive, held by the server itself from the moment it is forked
    server.json    socket, process id, binary and version
    redis.sock     its only listener; in a private directory of the system's temp if this path would be too long

The kernel releases these flocks when their holder dies. The server inherits the open server.lock, which is therefore
held exactly as long as a server may write. Only a holder of this lock starts a server, so there are never two on the
same data.

    server.lock   users.lock   meaning                          start()            leave()
    free          any          no server, or it was killed      starts it          nothing to do
    held          held         the crawl runs                   joins              leaves it running
    held          free         a killed crawl left it behind    joins (reclaims)   stops it

start.lock makes each row atomic. Lock files are never deleted, because two processes could then hold "the same" lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from bigcrawl.clock import Clock, SystemClock
from bigcrawl.exceptions import BigcrawlError, ConfigError, ContractError, TransientStoreError
from bigcrawl.private_files import disk_error, make_private_directory
from bigcrawl.redisdb.server_process import LOADING_MS_MAX, ServerProcess
from bigcrawl.redisdb.server_state import ServerRecord, ServerState, binary, ping, try_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EmbeddedServer", "binary"]

logger = logging.getLogger(__name__)

SILENT_MS_MAX = 30_000
STOP_MS_MAX = 10_000  # a crawl must end within 10 s of SIGTERM
START_LOCK_MS_MAX = LOADING_MS_MAX + SILENT_MS_MAX


class EmbeddedServer:
    def __init__(self, directory: Path, *, silent_ms_max: int = SILENT_MS_MAX, clock: Clock | None = None) -> None:
        self._directory = Path(directory).absolute()
        self._clock = clock or SystemClock()
        self._one_call = threading.Lock()
        self._leaving = threading.Event()
        self.process = ServerProcess(self._directory, silent_ms_max, self._clock, self._leaving)
        self._users_fd: int | None = None
        self._socket: Path | None = None

    def start(self) -> str:
        """Join or start the server, and return its URL, which stays the same until the last user has left."""
        with self._one_call, self._disk_errors():
            make_private_directory(self._directory)
            self._directory.chmod(0o700)
            return self._bring_up()

    def ensure_running(self) -> str:
        with self._one_call, self._disk_errors():
            if self._users_fd is None or self._socket is None:
                raise ContractError("ensure_running() was called before start() or after leave()")
            return self._bring_up()

    def leave(self, within_ms: int = STOP_MS_MAX) -> None:
        """Stop using the server; the last user shuts it down, if it ends in time. Raises nothing for I/O."""
        deadline_ms = self._clock.monotonic_ms() + within_ms
        self._leaving.set()
        with self._one_call:
            self._leaving.clear()
            if self._users_fd is None:
                return
            try:
                with self._start_lock(deadline_ms):
                    self._release_users_lock()
                    self._stop_if_unused(deadline_ms)
            except (OSError, BigcrawlError) as error:
                logger.warning(
                    "The embedded server in %(directory)s is left running: %(error)s",
                    {"directory": self._directory, "error": error},
                )
            finally:
                self._release_users_lock()

    def stop_if_unused(self) -> bool:
        """Stop a server that a killed crawl left behind; return whether none runs."""
        if not self._directory.is_dir():
            return True
        deadline_ms = self._clock.monotonic_ms() + STOP_MS_MAX
        with self._one_call, self._disk_errors(), self._start_lock(deadline_ms):
            return self._stop_if_unused(deadline_ms)

    def _bring_up(self) -> str:
        if self._users_fd is not None and self._socket is not None and ping(self._socket).state is ServerState.READY:
            return _socket_url(self._socket)
        with self._start_lock(self._clock.monotonic_ms() + START_LOCK_MS_MAX):
            joined_now = self._users_fd is None
            if joined_now:
                self._users_fd = try_lock(self._directory / "users.lock", fcntl.LOCK_SH)
                if self._users_fd is None:  # exclusive only under start.lock
                    raise TransientStoreError(f"{self._directory / 'users.lock'} is locked by an unknown process")
            try:
                self._socket = self.process.start_or_join()
            except BaseException:
                # If `leave` interrupted this start, the server may run, and `leave` ends it and drops the use.
                if joined_now and not self._leaving.is_set():
                    self._release_users_lock()
                raise
        return _socket_url(self._socket)

    def _stop_if_unused(self, deadline_ms: int) -> bool:
        sole_user = try_lock(self._directory / "users.lock", fcntl.LOCK_EX)
        if sole_user is None:
            return False
        try:
            self.process.stop(deadline_ms)
            return True
        finally:
            os.close(sole_user)

    @contextlib.contextmanager
    def _start_lock(self, deadline_ms: int) -> Iterator[None]:
        path = self._directory / "start.lock"
        while (held := try_lock(path, fcntl.LOCK_EX)) is None:
            if self._clock.monotonic_ms() > deadline_ms:
                raise TransientStoreError(f"another process has locked {path} for too long")
            self.process.pause()
        try:
            yield
        finally:
            os.close(held)

    def _release_users_lock(self) -> None:
        if self._users_fd is not None:
            os.close(self._users_fd)
            self._users_fd = None

    @contextlib.contextmanager
    def _disk_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, subprocess.SubprocessError) as error:
            what = f"the embedded server cannot use {self._directory}"
            if isinstance(error, OSError):
                raise disk_error(what, error, "BIGCRAWL_STATE_DIR") from error
            raise ConfigError(f"{what}: {error} (log: {self.process.log_path})") from error


def _socket_url(socket_path: Path) -> str:
    return f"unix://{quote(os.fspath(socket_path))}?db=0"


def running_url(directory: Path) -> str | None:
    record = ServerRecord.read(Path(directory).absolute())
    if record is None or ping(Path(record.socket)).state is not ServerState.READY:
        return None
    return _socket_url(Path(record.socket))
