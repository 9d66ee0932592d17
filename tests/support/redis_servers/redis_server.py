"""A private Redis or Valkey for tests: a unix socket in a directory of its own, killed with the test run.

The binary is the one the product would embed, or the one that BIGCRAWL_TEST_REDIS_BINARY names.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import redis

from bigcrawl.redisdb.embedded import binary
from bigcrawl.redisdb.server_state import server_environment
from tests.support.redis_servers.aof import commands_of, cut_aof_to, size_of
from tests.support.running.processes import spawn, wait_until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping
    from types import TracebackType

_STARTED: Final = "just started"
_PORT_TAKEN: Final = "Address already in use"


def binary_under_test() -> Path:
    """The server binary that all tests use."""
    named = os.environ.get("BIGCRAWL_TEST_REDIS_BINARY")
    return Path(named) if named else binary()


class PrivateRedis:
    """A server process on a unix socket; the path, and so `url`, stays the same over restarts.

    Args:
        aof: keep the data over `kill()` and `restart()`, with a timestamp a second in the AOF for `cut_aof`.
        options: more configuration, by Redis' names.
        server: another binary than the one under test.

    It may be started and restarted from any thread.
    """

    def __init__(
        self, *, aof: bool = True, options: Mapping[str, str] | None = None, server: Path | None = None
    ) -> None:
        self._binary = server or binary_under_test()
        # Not below pytest's directory: that may be too long for a socket's path.
        self.directory = Path(tempfile.mkdtemp(prefix="bigcrawl-test-"))
        self.socket_path = self.directory / "redis.sock"
        self.log_path = self.directory / "server.log"
        self.url = f"unix://{self.socket_path}?db=0"
        self.client = redis.Redis.from_url(self.url)
        self._process: subprocess.Popen[bytes] | None = None
        self._options = {
            "port": "0",
            "unixsocket": str(self.socket_path),
            "dir": str(self.directory),
            "logfile": str(self.log_path),
            "save": "",
            "maxmemory-policy": "noeviction",
            "appendonly": "yes" if aof else "no",
            "aof-timestamp-enabled": "yes" if aof else "no",
            # A rewrite would fold the annotations into a base file that cannot be cut.
            "auto-aof-rewrite-percentage": "0",
            **(options or {}),
        }

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def is_up(self) -> bool:
        """Whether it was started and neither stopped nor killed since."""
        return self._process is not None

    @property
    def aof(self) -> Path:
        """The directory of its append-only file."""
        return self.directory / "appendonlydir"

    def start(self) -> None:
        """Start the server and wait until it has loaded its data."""
        assert self._process is None, "already started"
        self._begin()
        wait_until(self._is_ready, f"a Redis in {self.directory} that answers")

    def _begin(self) -> None:
        arguments = [word for name, value in self._options.items() for word in (f"--{name}", value)]
        self._process = spawn([self._binary, *arguments], cwd=self.directory, env=server_environment())

    def kill(self) -> None:
        """End the server as kill -9 does; what it has written to its AOF stays."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Make the server hang: connections stay open, nothing is answered."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused server go on."""
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        """End the server cleanly."""
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Start the server again on the same data, after a clean stop if it still runs."""
        self.stop()
        self.start()

    def cut_aof_to(self, timestamp_s: int) -> int:
        """Kill the server, forget every write made after the second `timestamp_s`, start it again.

        Returns:
            How many bytes of AOF were cut off.
        """
        self.kill()
        cut_bytes = cut_aof_to(self.aof, timestamp_s)
        self.start()
        return cut_bytes

    def cut_aof(self, seconds: float) -> int:
        """Do as `cut_aof_to`, back by more than `seconds` and at most one second more."""
        self.kill()
        cut_bytes = self.cut_aof_of_killed(seconds)
        self.start()
        return cut_bytes

    def cut_aof_of_killed(self, seconds: float) -> int:
        """Do as `cut_aof` with a server that was killed, and leave it so."""
        # A second's writes stay only if that whole second was over `seconds` ago.
        return cut_aof_to(self.aof, int(time.time() - seconds) - 1)

    def commands(self) -> list[list[bytes]]:
        """What the AOF has; the server must not run."""
        return list(commands_of(self.aof))

    def aof_bytes(self) -> int:
        """The size of its append-only file, once all that was done is in it."""
        wait_until(lambda: not self.client.info("persistence")["aof_buffer_length"], "the AOF has all")
        return size_of(self.aof)

    def keep_aof(self) -> None:
        """Begin an append-only file with what the server has, and keep it over restarts."""
        self._options["appendonly"] = "yes"
        self.client.config_set("appendonly", "yes")
        wait_until(self._is_aof_kept, "the AOF has begun")

    def close(self) -> None:
        """Stop the server and delete its data."""
        self.client.close()
        self.kill()
        shutil.rmtree(self.directory)

    def _is_ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            self._process = None
            said = self.log_path.read_text(errors="replace")[-2000:] if self.log_path.exists() else ""
            if _PORT_TAKEN in said.rpartition(_STARTED)[2]:
                # The child of one that was killed, which sent a copy to a replica, has its port until it ends, too.
                self._begin()
                return False
            raise RuntimeError(f"the Redis in {self.directory} ended at once: {said}")
        with contextlib.suppress(redis.ConnectionError):  # BusyLoadingError is one
            return bool(self.client.ping())
        return False

    def _is_aof_kept(self) -> bool:
        said = self.client.info("persistence")
        return said["aof_enabled"] == 1 and not said["aof_rewrite_in_progress"] and not said["aof_rewrite_scheduled"]

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=120)
            self._process = None
            self.client.connection_pool.disconnect()
