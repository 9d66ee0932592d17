"""What Redis holds of a crawl, by its own counters, while the crawl runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.redisdb.keys import partition_keys

if TYPE_CHECKING:
    import redis


class Load(NamedTuple):
    """One look.

    Attributes:
        at_s: since the crawl's process was started.
        hot: URLs in memory, taken ones included.
        left: URLs that ever ended, and so left memory.
        waiting: URLs on disk, as the partitions' owners last told.
        used_bytes: of Redis, for everything.
    """

    at_s: float
    hot: int
    left: int
    waiting: int
    used_bytes: int

    @property
    def entered(self) -> int:
        """URLs that ever entered memory."""
        return self.hot + self.left


def look(client: redis.Redis, crawl: str, partitions: int, at_s: float) -> Load:
    """Add up the counters of all partitions."""
    with client.pipeline(transaction=False) as calls:
        for partition in range(partitions):
            calls.hgetall(partition_keys(crawl, partition).state)
            calls.hlen(partition_keys(crawl, partition).taken)
        calls.info("memory")
        *looks, memory = calls.execute()

    def total(name: str) -> int:
        return sum(int(state.get(name.encode(), 0)) for state in looks[::2])

    hot = max(0, total("hot")) + sum(looks[1::2])
    return Load(at_s, hot, total("ended"), total("waiting"), int(memory["used_memory"]))
