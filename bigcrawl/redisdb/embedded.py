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
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from bigcrawl.clock import SystemClock
from bigcrawl.exceptions import BigcrawlError, ConfigError, ContractError, TransientStoreError
from bigcrawl.private_files import disk_error, make_private_directory
from bigcrawl.redisdb.server_binary import binary
from bigcrawl.redisdb.server_process import LOADING_MS_MAX, ServerProcess
from bigcrawl.redisdb.server_state import (
    ServerRecord,
    ServerState,
    ping,
    try_lock,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl.clock import Clock

__all__ = ["EmbeddedServer", "binary"]

logger = logging.getLogger(__name__)

SILENT_MS_MAX = 30_000  # for a live server that does not answer at all: stopped, swapped out, or hanging
STOP_MS_MAX = 10_000  # for all of leave(): a crawl must end within 10 s of SIGTERM
START_LOCK_MS_MAX = LOADING_MS_MAX + SILENT_MS_MAX  # the longest that a start by another process may take


class EmbeddedServer:
    """The use of a directory's embedded server by one process.

    All methods block, for seconds while a large AOF is loaded, so call them in a thread. Any thread may call them, and
    any number of processes on this machine may use the same directory.

    Args:
        directory: used by nothing else; created if it is missing. It is on a local disk, or on one whose flocks work
            between machines. Only one machine can use it at a time.
        silent_ms_max: how long a live server may fail to answer before that is an error.
        clock: measures waiting times.

    Attributes:
        process: the server's, if one runs.
    """

    def __init__(self, directory: Path, *, silent_ms_max: int = SILENT_MS_MAX, clock: Clock | None = None) -> None:
        self._directory = Path(directory).absolute()
        self._clock = clock or SystemClock()
        self._one_call = threading.Lock()
        self._leaving = threading.Event()
        self.process = ServerProcess(self._directory, silent_ms_max, self._clock, self._leaving)
        self._users_fd: int | None = None
        self._socket: Path | None = None

    def __repr__(self) -> str:
        state = "not used" if self._users_fd is None else f"used at {self._socket}"
        return f"<EmbeddedServer {self._directory}: {state}>"

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
        if self._users_fd is not None and self._socket is not None and ping(self._socket).state is ServerState.READY:
            return _url(self._socket)
        with self._start_lock(self._clock.monotonic_ms() + START_LOCK_MS_MAX):
            joined_now = self._users_fd is None
            if joined_now:
                self._users_fd = try_lock(self._directory / "users.lock", fcntl.LOCK_SH)
                if self._users_fd is None:  # only ever locked exclusively under start.lock
                    raise TransientStoreError(f"{self._directory / 'users.lock'} is locked by an unknown process")
            try:
                self._socket = self.process.start_or_join()
            except BaseException:
                # After a failed start, this process does not use the server. A start that `leave` has interrupted may
                # have started one, which `leave` then ends with the use.
                if joined_now and not self._leaving.is_set():
                    self._drop_use()
                raise
        return _url(self._socket)

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
                raise TransientStoreError(f"another process has held {path} for too long")
            self.process.pause()
        try:
            yield
        finally:
            os.close(held)

    def _drop_use(self) -> None:
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


def _url(socket_path: Path) -> str:
    return f"unix://{quote(os.fspath(socket_path))}?db=0"


def running_url(directory: Path) -> str | None:
    """Return the URL of a directory's embedded server, without becoming its user; None if no server runs."""
    record = ServerRecord.read(Path(directory).absolute())
    if record is None or ping(Path(record.socket)).state is not ServerState.READY:
        return None
    return _url(Path(record.socket))
