"""A Redis with a replica that lags and takes its place, as in a fail-over that loses what was written last.

Each server answers nodes on its unix socket, and its replica on a port of an address of its own: on 127.0.0.1 a
connection to some other server may have taken the port while a killed one is away.
"""

from __future__ import annotations

from typing import Any

from tests.support.redis_servers.redis_cluster import free_ports
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import wait_until

ADDRESS = "127.77.0.1"
PAUSE_MS = 60_000  # far longer than a replica needs to catch up; ended as soon as it has


class Replicated(PrivateRedis):
    """A server that may have a replica."""

    def __init__(self, *, aof: bool = True) -> None:
        [self.port] = free_ports(1)
        options = {"bind": ADDRESS, "port": str(self.port), "repl-diskless-sync-delay": "0"}
        super().__init__(aof=aof, options={**options, "aof-timestamp-enabled": "yes"})

    def fall_behind(self, replica: Replica) -> int:
        """Let the replica have all that was written so far, and nothing that is written from now on.

        Returns:
            The size of this server's append-only file at that moment.
        """
        wait_until(replica.is_linked, "the replica follows")
        self.client.execute_command("CLIENT", "PAUSE", PAUSE_MS, "WRITE")
        try:
            end = self._replication()["master_repl_offset"]
            wait_until(lambda: replica.offset() >= end, "the replica has all")
            aof_bytes = self.aof_bytes()
            replica.client.replicaof("127.0.0.1", "1")
        finally:
            self.client.execute_command("CLIENT", "UNPAUSE")
        return aof_bytes

    def _replication(self) -> dict[str, Any]:
        said: dict[str, Any] = self.client.info("replication")
        return said


class Replica(Replicated):
    """A replica of a server, without a file until it takes over."""

    def __init__(self, master: Replicated) -> None:
        super().__init__(aof=False)
        self._master = master

    def start(self) -> None:
        """Start it and let it follow."""
        super().start()
        if self._options["appendonly"] == "no":
            self.client.replicaof(ADDRESS, str(self._master.port))

    def is_linked(self) -> bool:
        """Whether it has the whole of its master's data, and hears of what is new."""
        said = self._replication()
        return bool(said["role"] == "slave" and said["master_link_status"] == "up")

    def offset(self) -> int:
        """How much of its master's stream it has."""
        return int(self._replication()["slave_repl_offset"])

    def take_over(self) -> None:
        """Be a master, with an append-only file that begins with what it has."""
        self.client.replicaof("NO", "ONE")
        self.keep_aof()
