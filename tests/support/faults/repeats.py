"""Which URLs may be fetched again because of faults: the documented bounds, as a count a URL."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.scheduler.adapter.request_codec import decode_body
from bigcrawl.scheduler.records.member import unpack_member
from bigcrawl.url.canonical import canonicalize

if TYPE_CHECKING:
    from collections.abc import Iterable

    import redis

    from bigcrawl.simweb.check.checker import Exchange

# README P2: what ended in the last second before the one that Redis forgot.
MORE_MS = 1_000


class Repeats:
    """What was in process when a node met its fault, and what ended in the time that Redis forgot."""

    def __init__(self, client: redis.Redis, crawl: str, partitions: int) -> None:
        self._client = client
        self._keys = [PartitionKeys(crawl, partition) for partition in range(partitions)]
        self._urls: Counter[str] = Counter()
        self._forgotten: list[tuple[int, int, Counter[str]]] = []

    def of_node(self, name: str) -> int:
        """A node stops or dies now: what Redis holds as taken by it may be fetched once more; returns how many."""
        pipeline = self._client.pipeline(transaction=False)
        for keys in self._keys:
            pipeline.hget(keys.owner, "node")
            pipeline.hvals(keys.taken)
        replies = pipeline.execute()
        found = [
            _url_of(record)
            for owner, records in zip(replies[::2], replies[1::2], strict=True)
            if owner and owner.decode().startswith(f"{name}-")
            for record in records
        ]
        self._urls.update(url for url in found if url)
        return len(found)

    def of_time(self, start_ms: int, end_ms: int, ended: Counter[str]) -> None:
        """Redis forgot all from `start_ms` on; by `end_ms` nodes had heard of it.

        It forgot the ends of `ended` too. Their fetches may have ended earlier, when Redis took no writes.
        """
        self._forgotten.append((start_ms - MORE_MS, end_ms, ended))

    def ended(self, commands: Iterable[list[bytes]]) -> Counter[str]:
        """URLs that were acknowledged, by what the AOF says: no longer taken, and not back in a queue."""
        urls: dict[tuple[bytes, bytes], str] = {}
        ended: Counter[str] = Counter()
        untaken: set[tuple[bytes, bytes]] = set()
        queued: set[tuple[bytes, bytes]] = set()
        for name, *words in (*commands, [b"EXEC"]):
            partition, _, rest = words[0].partition(b"}:") if words else (b"", b"", b"")
            if name == b"HSET" and rest == b"taken":
                urls |= {
                    (partition, seq): _url_of(record) for seq, record in zip(words[1::2], words[2::2], strict=True)
                }
            elif name == b"HDEL" and rest == b"taken":
                untaken |= {(partition, seq) for seq in words[1:]}
            elif name == b"ZADD" and rest.startswith(b"back:"):
                queued.add((partition, words[-1].partition(b":")[0]))
            elif name in (b"MULTI", b"EXEC"):
                ended.update(urls[each] for each in untaken - queued if each in urls)
                untaken, queued = set(), set()
        return ended

    def allowed(self, exchanges: Iterable[Exchange], port: int) -> Counter[str]:
        """How often each URL may be fetched beyond once."""
        allowed = Counter(self._urls)
        fetches = [(f"http://{each.host}:{port}{each.target}", each.end_ms) for each in exchanges]
        for start_ms, end_ms, ended in self._forgotten:
            lately = Counter(url for url, ended_ms in fetches if start_ms <= ended_ms <= end_ms)
            allowed += lately | ended
        return allowed


def _url_of(record: bytes) -> str:
    member = record.split(b"\n", 3)[3]
    return canonicalize(decode_body(unpack_member(member).body)[0]) if member else ""
