"""Which URLs may be fetched again because of faults: the documented bounds, as a count a URL."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.redisdb.keys import PartitionKeys
from tests.support.faults.redis_log import read_history, url_of
from tests.support.redis_servers.aof import commands_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bigcrawl_simweb.check.checker import Exchange
    from tests.support.faults.redis_log import History
    from tests.support.redis_servers.redis_server import PrivateRedis

# docs/promises.md P2: what ended in the last second before the one that Redis forgot.
MORE_MS = 1_000


class Log(NamedTuple):
    """An append-only file, and how many bytes of it count; None: all."""

    directory: Path
    bytes_max: int | None = None


class _Forgotten(NamedTuple):
    """What Redis had, what was left, and when the fetches ended that it was told of or was about to be told of.

    And which nodes could not say what they had in process when it was back.
    """

    had: tuple[Log, ...]
    left: tuple[Log, ...]
    start_ms: int
    end_ms: int
    silent: frozenset[str]


class Repeats:
    """What was in process on a node when another one got it, and what ended in the time that Redis forgot."""

    def __init__(self, server: PrivateRedis, crawl: str, partitions: int) -> None:
        self._server = server
        self._keys = [PartitionKeys(crawl, partition) for partition in range(partitions)]
        self._earlier: tuple[Log, ...] = ()  # of servers whose place others have taken
        self._given_up: Counter[str] = Counter()
        self._forgotten: list[_Forgotten] = []

    def in_process(self, name: str) -> list[str]:
        """The URLs that Redis holds as taken by a node; none while it is away."""
        if not self._server.is_up:
            return []
        pipeline = self._server.client.pipeline(transaction=False)
        for keys in self._keys:
            pipeline.hget(keys.owner, "node")
            pipeline.hvals(keys.taken)
        replies = pipeline.execute()
        pairs = zip(replies[::2], replies[1::2], strict=True)
        return [
            url_of(record)
            for owner, records in pairs
            if owner and owner.decode().startswith(f"{name}-")
            for record in records
        ]

    def give_up(self, name: str) -> None:
        """A node is told to end now: it gives up what it fetches, and gives the URLs back."""
        self._given_up.update(filter(None, self.in_process(name)))

    def forget(self, aof: Path, kept_bytes: int, start_ms: int, end_ms: int, silent: Iterable[str] = ()) -> None:
        """Redis had all of this file and forgot all from `start_ms` on; by `end_ms` nodes will have heard of it.

        A fetch whose end is forgotten may have ended earlier than that, if Redis took no writes then. The file is read
        in the end, so it must stay as it is. What Redis had as taken may be fetched again if another node has claimed
        its partition next, or if the node was `silent`: it died or was stopped before Redis heard from it.
        """
        had, left = (*self._earlier, Log(aof)), (*self._earlier, Log(aof, kept_bytes))
        self._forgotten.append(_Forgotten(had, left, start_ms - MORE_MS, end_ms, frozenset(silent)))

    def follow(self, server: PrivateRedis, kept_bytes: int) -> None:
        """Another server, which had so much of the last one's file, has taken its place."""
        self._earlier = (*self._earlier, Log(self._server.aof, kept_bytes))
        self._server = server

    def allowed(self, exchanges: Iterable[Exchange], port: int) -> Counter[str]:
        """How often each URL may be fetched beyond once."""
        now = _read((*self._earlier, Log(self._server.aof)))
        allowed = self._given_up + now.lost
        fetches = [(f"http://{each.host}:{port}{each.target}", each.end_ms) for each in exchanges]
        for had, left, start_ms, end_ms, silent in self._forgotten:
            before, after = _read(had), _read(left)
            forgotten = before - after
            allowed += Counter(
                url
                for partition, owner, url in before.taken
                if owner.partition(b"-")[0].decode() in silent or owner != _next_owner(partition, after, now)
            )
            lately = Counter(url for url, ended_ms in fetches if start_ms <= ended_ms <= end_ms)
            allowed += forgotten.lost
            allowed += lately | forgotten.ended
        return allowed


def _next_owner(partition: bytes, before: History, now: History) -> bytes:
    """Who has claimed a partition first since then; empty: nobody."""
    since = len(before.claims.get(partition, []))
    return next(iter(now.claims.get(partition, [])[since:]), b"")


def _read(logs: Iterable[Log]) -> History:
    return read_history(command for log in logs for command in commands_of(log.directory, log.bytes_max))
