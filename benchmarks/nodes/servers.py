"""The Redis that the measured nodes share: one server, or the masters of a cluster."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.crawl import procfs
from tests.support.redis_servers.redis_cluster import PrivateCluster
from tests.support.redis_servers.redis_server import PrivateRedis

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis


class Master(NamedTuple):
    """One server.

    Attributes:
        address: where it listens: the path of a unix socket, or a port of 127.0.0.1.
    """

    pid: int
    client: redis.Redis
    address: str | int

    def cpu_s(self) -> float:
        """CPU seconds since its start."""
        return procfs.cpu_seconds(self.pid)


class Servers(NamedTuple):
    """All servers, in the order of their slots."""

    url: str
    masters: list[Master]

    def cpu_s(self) -> float:
        """CPU seconds of all since their start."""
        return sum(master.cpu_s() for master in self.masters)

    def reset_stats(self) -> None:
        """Let the counts of commands begin anew."""
        for master in self.masters:
            master.client.config_resetstat()

    def commands(self) -> dict[str, Counter[str]]:
        """By command: how many calls, and how many microseconds, over all servers."""
        found: dict[str, Counter[str]] = {}
        for master in self.masters:
            stats: dict[str, Any] = master.client.info("commandstats")
            for name, row in stats.items():
                counts = found.setdefault(name.removeprefix("cmdstat_"), Counter())
                counts.update(calls=row["calls"], usec=row["usec"])
        return found

    def ended(self) -> int:
        """URLs that have ended, over all partitions."""
        return sum(
            int(master.client.hget(key, "ended") or 0)
            for master in self.masters
            for key in master.client.scan_iter("bigcrawl:*:state", count=1_000)
        )


@contextmanager
def started(masters: int) -> Iterator[Servers]:
    """Start fresh servers: a cluster of so many masters, or with 0 one server that is in no cluster."""
    if not masters:
        with PrivateRedis() as server:
            yield Servers(server.url, [Master(server.pid, server.client, str(server.socket_path))])
        return
    with PrivateCluster(masters, aof=True) as cluster:
        yield Servers(cluster.url, [Master(one.pid, one.client, one.port) for one in cluster.masters])
