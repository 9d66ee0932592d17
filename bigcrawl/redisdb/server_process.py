"""The process of an embedded server. The caller holds start.lock; `embedded` explains the directory."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.redisdb.server_state import (
    PING_MS_MAX,
    ServerRecord,
    ServerState,
    ask_to_end,
    find_binary,
    is_free,
    make_private,
    ping,
    server_environment,
    start_ticks_of,
    try_lock,
)

if TYPE_CHECKING:
    import threading

    from bigcrawl.clock import Clock

logger = logging.getLogger(__name__)

SOCKET_PATH_BYTES_MAX = 107  # Linux' sun_path, without its NUL

LOADING_MS_MAX = 120_000  # how long reading the AOF may take
POLL_MS = 10
STOP_POLL_MS = 1

SERVER_OPTIONS = (
    # No TCP: the socket's directory controls access.
    *("--port", "0"),
    *("--unixsocketperm", "600"),
    *("--daemonize", "yes"),
    # A crash of the machine loses at most the last second.
    *("--appendonly", "yes"),
    *("--appendfsync", "everysec"),
    *("--aof-load-truncated", "yes"),
    *("--save", ""),
    *("--maxmemory-policy", "noeviction"),
)


class ServerProcess:
    def __init__(self, directory: Path, silent_ms_max: int, clock: Clock, is_leaving: threading.Event) -> None:
        self._directory = directory
        self._silent_ms_max = silent_ms_max
        self._clock = clock
        self._is_leaving = is_leaving

    @property
    def pid(self) -> int | None:
        """The server's process id; None before its first answer."""
        record = ServerRecord.read(self._directory)
        return record.live_pid() if record else None

    @property
    def log_path(self) -> Path:
        return self._directory / "server.log"

    def start_or_join(self) -> Path:
        while True:
            server_lock = try_lock(self._directory / "server.lock", fcntl.LOCK_EX)
            record = ServerRecord.read(self._directory)
            if server_lock is None:
                socket_path = self._socket_path(record)
            else:
                try:
                    log_bytes = self.log_path.stat().st_size if self.log_path.exists() else 0
                    socket_path = self._start_server(server_lock, record)
                finally:
                    os.close(server_lock)  # the server holds its own copy
            pid = self._await_answer(socket_path, joined=record if server_lock is None else None)
            if pid is not None:
                self._record_pid(socket_path, pid, joined=server_lock is None)
                return socket_path
            if server_lock is not None:
                raise self._ended_at_once(self._log_since(log_bytes))

    def _start_server(self, server_lock: int, record: ServerRecord | None) -> Path:
        found = find_binary()
        socket_path = self._socket_path(record)
        ServerRecord(  # first, so that a crash does not lose the socket's path
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
            env=server_environment(),
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
            self.pause()
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

    def stop(self, deadline_ms: int) -> None:
        """Stop the server, or raise TransientStoreError at the deadline."""
        record = ServerRecord.read(self._directory)
        socket_path = self._socket_path(record)
        pid = None
        while not self._is_gone():
            if not pid:
                # The kernel is more reliable than the record.
                pid = ping(socket_path).pid or (record.live_pid() if record else None)
                if pid:
                    os.kill(pid, signal.SIGTERM)
                    ask_to_end(socket_path)
            if self._clock.monotonic_ms() > deadline_ms:
                raise TransientStoreError(f"process {pid} does not end; see {self.log_path}")
            time.sleep(STOP_POLL_MS / 1000)
        if socket_path.parent != self._directory:
            with contextlib.suppress(OSError):
                socket_path.unlink(missing_ok=True)
                socket_path.parent.rmdir()

    def _is_gone(self) -> bool:
        return is_free(self._directory / "server.lock")

    def _socket_path(self, record: ServerRecord | None) -> Path:
        """Return the socket's path, which must not change while the server has users."""
        beside_data = self._directory / "redis.sock"
        if len(os.fsencode(beside_data)) <= SOCKET_PATH_BYTES_MAX:
            return beside_data
        # The record of a copied directory names another crawl's socket.
        if record and record.directory == str(self._directory) and make_private(Path(record.socket).parent):
            return Path(record.socket)
        for parent in (tempfile.gettempdir(), "/tmp"):  # noqa: S108 - mkdtemp makes a private one
            if len(os.fsencode(parent)) + len("/bigcrawl-12345678/redis.sock") <= SOCKET_PATH_BYTES_MAX:
                return Path(tempfile.mkdtemp(prefix="bigcrawl-", dir=parent)) / "redis.sock"
        raise ConfigError(
            f"the path of the embedded server's socket would be too long, below {beside_data} and "
            f"{tempfile.gettempdir()}; set TMPDIR to a shorter path"
        )

    def pause(self) -> None:
        """Sleep briefly; raise TransientStoreError if this process is leaving."""
        if self._is_leaving.wait(POLL_MS / 1000):
            raise TransientStoreError("the crawl ends, so it no longer waits for the embedded server")

    def _ended_at_once(self, output: str) -> ConfigError | TransientStoreError:
        # Without Redis' prefix of process, role and time.
        lines = [re.sub(r"^\d+:\w .*?\d:\d\d\.\d+ [#*-] ", "", line) for line in output.split("\n")]
        reason = " / ".join(line.strip() for line in lines[-5:] if line.strip()) or "it printed no reason"
        what = f"the embedded server in {self._directory} ended at once: {reason[-500:]} (log: {self.log_path})"
        if os.strerror(errno.ENOSPC) in reason:
            return TransientStoreError(f"{what}; make room there")
        return ConfigError(what)

    def _log_since(self, start_bytes: int) -> str:
        try:
            with self.log_path.open("rb") as log:
                log.seek(start_bytes)
                lines = log.read().decode("utf-8", "replace").splitlines()
        except FileNotFoundError:
            return ""
        warnings = [line for line in lines if " # " in line and "overcommit" not in line]
        return "\n".join((warnings or lines)[-3:])
