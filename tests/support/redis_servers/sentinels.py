"""A master and its replica, watched by sentinels that elect one of their own to replace a master that is gone."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

import redis

from tests.support.redis_servers.redis_cluster import free_ports
from tests.support.redis_servers.redis_server import binary_under_test
from tests.support.running.processes import spawn, wait_until

if TYPE_CHECKING:
    import subprocess

SERVICE = "crawls"


class Watched:
    """One master, one replica, and sentinels, on free ports of 127.0.0.1; no data on disk.

    Args:
        sentinels: how many; more than half of them must agree that the master is gone, and who replaces it.
        down_after_ms: how long a server must be silent for that. Longer than a busy machine lets a live one wait.
    """

    def __init__(self, *, sentinels: int = 1, down_after_ms: int = 1000) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="bigcrawl-sentinel-"))
        self.master_port, self.replica_port, *self.ports = free_ports(2 + sentinels)
        self._down_after_ms = down_after_ms
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The URL of a client; an address where nobody listens comes behind the sentinels."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in (*self.ports, 1))
        return f"redis+sentinel://{hosts}/{SERVICE}/0"

    def kill_master(self) -> None:
        """End the first master as kill -9 does."""
        self._processes[self.master_port].kill()
        self._processes[self.master_port].wait()

    def masters(self) -> set[int]:
        """The ports of the servers that the sentinels call the master: one, unless they do not agree."""
        found = set()
        for port in self.ports:
            with redis.Redis(port=port) as client:
                found.add(int(client.sentinel_get_master_addr_by_name(SERVICE)[1]))
        return found

    def close(self) -> None:
        """Kill all, and delete their directories."""
        for process in self._processes.values():
            process.kill()
            process.wait()
        shutil.rmtree(self.directory)

    def _start(self) -> None:
        self._spawn(self.master_port)
        self._spawn(self.replica_port, "--replicaof", "127.0.0.1", str(self.master_port))
        wait_until(self._link_is_up, "a synced replica")
        lines = [
            f"sentinel monitor {SERVICE} 127.0.0.1 {self.master_port} {len(self.ports) // 2 + 1}",
            f"sentinel down-after-milliseconds {SERVICE} {self._down_after_ms}",
            f"sentinel failover-timeout {SERVICE} {3 * self._down_after_ms}",
        ]
        for port in self.ports:
            config = self.directory / f"{port}.conf"  # a sentinel rewrites its own
            config.write_text("\n".join(lines) + "\n")
            self._spawn(port, "--sentinel", config=config)
        wait_until(self._know_all, "sentinels that know the replica and each other")

    def _link_is_up(self) -> bool:
        with contextlib.suppress(redis.ConnectionError), redis.Redis(port=self.replica_port) as client:
            return bool(client.info("replication").get("master_link_status") == "up")
        return False

    def _know_all(self) -> bool:
        for port in self.ports:
            try:
                with redis.Redis(port=port) as client:
                    others = client.sentinel_sentinels(SERVICE)
                    if not client.sentinel_slaves(SERVICE) or len(others) + 1 < len(self.ports):
                        return False
            except redis.ConnectionError:
                return False
        return True

    def _spawn(self, port: int, *options: str, config: Path | None = None) -> None:
        directory = self.directory / str(port)
        directory.mkdir()
        words = [str(config)] if config else []
        words += ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory), *options]
        words += [] if config else ["--save", "", "--repl-diskless-sync-delay", "0"]
        with (directory / "output").open("wb") as said:
            self._processes[port] = spawn([binary_under_test(), *words], cwd=directory, stdout=said, stderr=said)
