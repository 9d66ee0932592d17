"""A crawl that a node has joined, and the short stream that notifies owners of entries for their partitions.

Owners seldom look into all inboxes.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.assignment import read_ranges, write_ranges
from bigcrawl.scheduler.crawl.crawl_record import CrawlRecord, open_record
from bigcrawl.scheduler.crawl.in_process import InProcess
from bigcrawl.scheduler.crawl.membership import Membership

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.scripts import Value
    from bigcrawl.store.objects import ObjectStore
    from bigcrawl.url.domain import PublicSuffixes
    from bigcrawl.url.key import Keys, PldKey

PARTITIONS = b"p"
"""The partitions' numbers, such as `0-3,7`."""

KEPT = 200  # twenty nodes make a hundred in two seconds

NOT_JOINED = "the node has not joined the crawl"
HOSTS_CACHED: Final = 1 << 15


class Arrivals:
    """Partitions with new inbox entries; the event `came` is set while `take` has something to return."""

    def __init__(self, client: RedisClient, crawl: str) -> None:
        self._client = client
        self._key = CrawlKeys(crawl).arrivals
        self._untold: set[int] = set()
        self._heard = ""
        self._arrived: set[int] | None = set()
        self._is_read = self._is_being_read = False
        self.came = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Arrivals untold={len(self._untold)} heard={self._heard}>"

    def add(self, partition: int) -> None:
        self._untold.add(partition)

    async def tell(self, partitions: Iterable[int] = ()) -> None:
        told = self._untold.union(partitions)
        if not told:
            return
        self._untold = set()
        is_taken = False
        try:
            row = ("XADD", self._key, "MAXLEN", "~", KEPT, "*", PARTITIONS, write_ranges(told))
            [reply] = await self._client.commands_each([row])
            is_taken = not isinstance(reply, BigcrawlError)
        finally:
            if not is_taken:
                self._untold |= told

    async def take(self) -> set[int] | None:
        """Return the partitions with new notices; None if some may have been missed. Asks Redis unless just read."""
        if not self._is_read and not self._is_being_read:
            with self.reading() as command:
                self.record_read(command, await self._client.command(*command))
        taken, self._arrived, self._is_read = self._arrived, set(), False
        self.came.clear()
        return taken

    @contextmanager
    def reading(self) -> Iterator[tuple[Value, ...]]:
        """Return the command that reads new notices and the last one again; `record_read` takes its reply."""
        self._is_being_read = True
        try:
            yield "XRANGE", self._key, self._heard or "-", "+"
        finally:
            self._is_being_read = False

    def record_read(self, command: tuple[Value, ...], rows: Sequence[Any]) -> None:
        heard, self._heard, self._is_read = str(command[2]), rows[-1][0].decode() if rows else "", True
        if rows and rows[0][0].decode() == heard:
            rows = rows[1:]
        elif heard != "-" or len(rows) >= KEPT:  # some may have been removed or lost
            self._arrived = None
        if self._arrived is not None:
            self._arrived |= {partition for _, fields in rows for partition in read_ranges(fields[1].decode())}
        if self._arrived is None or self._arrived:
            self.came.set()


class JoinedCrawl:
    """A crawl as one node knows it. Keys, PLDs and partitions of hosts need its record, which `join` reads."""

    def __init__(self, config: Config, client: RedisClient, clock: Clock, node_id: str) -> None:
        self.config = config
        self.client = client
        self.clock = clock
        self.node_id = node_id
        self.objects = _objects_at(config.store.url) if config.store.url else None
        self.in_process = InProcess(config.frontier.in_process_max)
        self.membership = Membership(config, node_id, self.in_process)
        self.arrivals = Arrivals(client, config.crawl.name)
        self._record: CrawlRecord | None = None
        self._private: PublicSuffixes | None = None
        self.partition_of_host: Callable[[str], int] = _not_joined

    def __repr__(self) -> str:
        return f"<JoinedCrawl {self.config.crawl.name} {self._record!r}>"

    async def join(self) -> None:
        """Read the crawl's record, or write it if there is none.

        Raises:
            ConfigError: the settings contradict the record.
            TransientStoreError: Redis or the store is away.
        """
        self._record = record = await open_record(self.client, self.config.crawl, self.objects)
        pld_of, partition_of, partitions = record.suffixes.pld, record.keys.partition_of, self.config.crawl.partitions
        self.partition_of_host = lru_cache(HOSTS_CACHED)(lambda host: partition_of(pld_of(host), partitions))

    async def check(self) -> None:
        record = await open_record(self.client, self.config.crawl, self.objects, is_joined=True)
        if self._record is None or record.crawl_id != self._record.crawl_id:
            raise ConfigError(
                "Redis came back without this crawl; restore its data, or start from scratch (BIGCRAWL_FRESH=1)"
            )

    @property
    def is_new(self) -> bool:
        return self._record is not None and self._record.is_new

    @property
    def keys(self) -> Keys:
        assert self._record is not None, NOT_JOINED
        return self._record.keys

    def pld_of(self, host: str) -> str:
        assert self._record is not None, NOT_JOINED
        return self._record.suffixes.pld(host)

    def private_pld_of(self, host: str) -> str:
        """Return the PLD of a host where companies' suffixes count as public ones."""
        assert self._record is not None, NOT_JOINED
        if self._private is None:
            self._private = self._record.suffixes.with_private()
        return self._private.pld(host)

    def pld_key(self, pld: str) -> PldKey:
        return self.keys.of_pld(pld)

    def key_of(self, data: bytes) -> int:
        return self.keys.of_bytes(data)


def _not_joined(host: str) -> int:
    raise AssertionError(NOT_JOINED)


def _objects_at(url: str) -> ObjectStore:
    from bigcrawl.store.objects import ObjectStore

    return ObjectStore(url)
