"""A Redis Cluster for tests: masters on free ports of 127.0.0.1, each with a replica if asked for."""

from __future__ import annotations

import contextlib
import functools
import itertools
import shutil
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import redis

from tests.support.redis_servers.redis_server import binary_under_test
from tests.support.running.ports import bind_lasting
from tests.support.running.processes import spawn, wait_until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from types import TracebackType

SLOTS = 16384
# A port that was free a moment ago may be taken when the server binds it: then all is tried again.
ATTEMPTS = 5


class PortTakenError(Exception):
    """A server ended because another process took its port first."""


@dataclass(slots=True, eq=False)
class Server:
    """One server of the cluster."""

    process: subprocess.Popen[bytes]
    port: int
    bus_port: int
    log_path: Path
    client: redis.Redis

    @property
    def pid(self) -> int:
        return self.process.pid

    def is_answering(self) -> bool:
        if self.process.poll() is not None:
            said = self.log_path.read_text(errors="replace")[-2000:]
            raise PortTakenError(said) if "Address already in use" in said else RuntimeError(said)
        with contextlib.suppress(redis.ConnectionError):
            return bool(self.client.ping())
        return False

    def sees_all(self, masters: int) -> bool:
        """Whether this node's view of the cluster is whole, and not only its own part of it."""
        seen = self.client.execute_command("CLUSTER INFO")
        return (
            seen["cluster_state"] == "ok"
            and int(seen["cluster_slots_ok"]) == SLOTS
            and int(seen["cluster_size"]) == masters
        )


class PrivateCluster:
    """Masters that share the slots evenly; `url` is the first one's address, enough for a cluster client.

    The replica of `masters[i]` is `replicas[i]`. A server is taken for failed after `node_timeout_ms` of silence: by
    default so long that a machine busy with other tests does not make masters fail each other. Only with `aof` the
    servers write what they are told to disk.
    """

    def __init__(
        self, masters: int = 3, *, replicas: bool = False, node_timeout_ms: int = 15_000, aof: bool = False
    ) -> None:
        self._count = masters
        self._node_timeout_ms = node_timeout_ms
        self._has_replicas = replicas
        self._has_aof = aof
        self.directory = Path(tempfile.mkdtemp(prefix="bigcrawl-cluster-"))
        self.masters: list[Server] = []
        self.replicas: list[Server] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.masters[0].port}"

    def start(self) -> None:
        """Start the masters, give them their slots, and wait until each sees the whole cluster as ok."""
        for attempt in range(ATTEMPTS):
            try:
                self._start_masters(attempt)
                break
            except PortTakenError:
                self._end_masters()
                if attempt == ATTEMPTS - 1:
                    raise
        for index, master in enumerate(self.masters):
            low, high = SLOTS * index // self._count, SLOTS * (index + 1) // self._count - 1
            # Distinct epochs from the start spare the nodes the vote on who has which.
            master.client.execute_command("CLUSTER SET-CONFIG-EPOCH", index + 1)
            master.client.execute_command("CLUSTER ADDSLOTSRANGE", low, high)
        # Each meets each: waiting for gossip to introduce them takes seconds.
        for one, other in itertools.combinations(self.masters, 2):
            one.client.execute_command("CLUSTER MEET", "127.0.0.1", other.port, other.bus_port)
        for master in self.masters:
            sees_all = functools.partial(master.sees_all, self._count)
            wait_until(sees_all, f"a whole cluster seen from {master.port}")
        if self._has_replicas:
            self._start_replicas()

    def fail_over(self, index: int) -> int:
        """A master dies, and its replica takes its place at once, without asking the other masters.

        Returns:
            When it died, in ms.
        """
        return self._replace(index, is_elected=False)

    def elect(self, index: int) -> None:
        """A master dies, the others notice after a while, and elect its replica."""
        self._replace(index, is_elected=True)

    def _replace(self, index: int, *, is_elected: bool) -> int:
        dead, heir = self.masters[index], self.replicas[index]
        dead.process.kill()
        dead.process.wait()
        died_ms = round(time.time() * 1000)
        if not is_elected:
            heir.client.execute_command("CLUSTER FAILOVER TAKEOVER")
        self.masters[index], self.replicas[index] = heir, dead
        wait_until(
            lambda: all(heir.port in ports_of_masters(master.client) for master in self.masters),
            f"{heir.port} seen as a master by all",
        )
        return died_ms

    def move_slot(self, slot: int, source: Server, target: Server, *, end: bool = True) -> None:
        """Move a slot with its keys; with `end` False it stays on its way, and its keys where they are."""
        ids = {server: server.client.execute_command("CLUSTER MYID") for server in (source, target)}
        target.client.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", ids[source])
        source.client.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", ids[target])
        if not end:
            return
        while keys := source.client.execute_command("CLUSTER GETKEYSINSLOT", slot, 100):
            source.client.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
        for server in (target, source):
            server.client.execute_command("CLUSTER SETSLOT", slot, "NODE", ids[target])

    @contextlib.contextmanager
    def client(self, **options: Any) -> Iterator[redis.RedisCluster]:
        """A client of the whole cluster whose sockets are closed at the end."""
        client = redis.RedisCluster.from_url(self.url, **options)
        try:
            yield client
        finally:
            client.disconnect_connection_pools()  # its close() leaves the nodes' sockets open
            client.close()

    def close(self) -> None:
        """Kill the masters and delete their directories."""
        self._end_masters()
        shutil.rmtree(self.directory)

    def _start_masters(self, attempt: int) -> None:
        ports = free_ports(2 * self._count)
        for port, bus_port in zip(ports[::2], ports[1::2], strict=True):
            self.masters.append(self._spawn(self.directory / f"{attempt}-{port}", port, bus_port))
        for master in self.masters:
            wait_until(master.is_answering, f"a Redis on port {master.port} that answers")

    def _start_replicas(self) -> None:
        ports = free_ports(2 * self._count)
        for port, bus_port in zip(ports[::2], ports[1::2], strict=True):
            self.replicas.append(self._spawn(self.directory / f"replica-{port}", port, bus_port))
        for replica, master in zip(self.replicas, self.masters, strict=True):
            wait_until(replica.is_answering, f"a Redis on port {replica.port} that answers")
            replica.client.execute_command("CLUSTER MEET", "127.0.0.1", master.port, master.bus_port)
            master_id = master.client.execute_command("CLUSTER MYID")
            wait_until(functools.partial(_becomes_replica, replica, master_id), f"a replica of {master.port}")
        for replica in self.replicas:
            wait_until(lambda r=replica: r.client.info("replication")["master_link_status"] == "up", "a synced replica")  # type: ignore[misc]

    def _spawn(self, directory: Path, port: int, bus_port: int) -> Server:
        directory.mkdir()
        log_path = directory / "server.log"
        options = {
            "port": port,
            "cluster-port": bus_port,
            "bind": "127.0.0.1",
            "dir": directory,
            "logfile": log_path,
            "save": "",
            "appendonly": "yes" if self._has_aof else "no",
            "cluster-enabled": "yes",
            "cluster-config-file": "nodes.conf",
            "cluster-node-timeout": self._node_timeout_ms,
        }
        arguments = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        process = spawn([binary_under_test(), *arguments], cwd=directory)
        client = redis.Redis(host="127.0.0.1", port=port, decode_responses=True)
        return Server(process, port, bus_port, log_path, client)

    def _end_masters(self) -> None:
        servers = self.masters + self.replicas
        for server in servers:
            server.client.close()
            server.process.kill()
        for server in servers:
            server.process.wait(timeout=300)
        self.masters.clear()
        self.replicas.clear()


def ports_of_masters(client: redis.Redis) -> set[int]:
    """Where the masters listen, as one server sees it."""
    return {int(row[2][1]) for row in client.execute_command("CLUSTER SLOTS")}


def _becomes_replica(server: Server, master_id: str) -> bool:
    try:
        server.client.execute_command("CLUSTER REPLICATE", master_id)
    except redis.ResponseError:  # it has not heard of that master yet
        return False
    return True


def free_ports(count: int) -> list[int]:
    """Ports that were free at the same moment, all distinct, and that nobody gets who asks the system for any."""
    with contextlib.ExitStack() as held:
        return [bind_lasting(held.enter_context(socket.socket())) for _ in range(count)]
