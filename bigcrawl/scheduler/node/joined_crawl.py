"""The crawl that a node has joined: its record in Redis, and the keys and partitions that depend on it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.crawl.crawl_record import open_record

if TYPE_CHECKING:
    from bigcrawl.config import CrawlConfig
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.crawl_record import CrawlRecord
    from bigcrawl.store.objects import Objects
    from bigcrawl.url.key import Keys, PldKey

NOT_JOINED = "the node has not joined the crawl"
HOSTS_CACHED: Final = 1 << 15  # some 4 MB


class JoinedCrawl:
    """The crawl's record, keys and partitions. Only `join` works without the record."""

    def __init__(self, client: RedisClient, crawl: CrawlConfig, objects: Objects | None = None) -> None:
        self._client = client
        self._objects = objects
        self._crawl = crawl
        self._partitions = crawl.partitions
        self._record: CrawlRecord | None = None
        self._partition_of = _not_joined

    def __repr__(self) -> str:
        return f"<JoinedCrawl {self._crawl.name} {self._record!r}>"

    async def join(self) -> None:
        """Read the crawl's record, or write it if there is none.

        Raises:
            ConfigError: the settings contradict the record.
            TransientStoreError: Redis or the store is away.
        """
        self._record = record = await open_record(self._client, self._crawl, self._objects)
        pld_of, partition_of = record.suffixes.pld, record.keys.partition_of
        self._partition_of = lru_cache(HOSTS_CACHED)(lambda host: partition_of(pld_of(host), self._partitions))

    async def check(self) -> None:
        """Check that a restarted Redis still has the same crawl; raises as `join`."""
        record = await open_record(self._client, self._crawl, self._objects, is_joined=True)
        if self._record is None or record.crawl_id != self._record.crawl_id:
            raise ConfigError("Redis came back without this crawl; restore its data, or start anew (BIGCRAWL_FRESH=1)")

    @property
    def is_new(self) -> bool:
        """Whether this node has begun the crawl."""
        return self._record is not None and self._record.is_new

    @property
    def keys(self) -> Keys:
        """Makes the crawl's keys."""
        assert self._record is not None, NOT_JOINED
        return self._record.keys

    def pld_of(self, host: str) -> str:
        """The pay-level domain of a host, by the crawl's own list of suffixes."""
        assert self._record is not None, NOT_JOINED
        return self._record.suffixes.pld(host)

    def pld_key(self, pld: str) -> PldKey:
        """The key of a pay-level domain."""
        return self.keys.of_pld(pld)

    def partition_of_host(self, host: str) -> int:
        """The partition of a host's pay-level domain."""
        return self._partition_of(host)


def _not_joined(host: str) -> int:
    raise AssertionError(NOT_JOINED)
