from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.crawl.arrivals import Arrivals
from bigcrawl.scheduler.crawl.crawl_record import open_record
from bigcrawl.scheduler.crawl.in_process import InProcess
from bigcrawl.scheduler.crawl.membership import Membership

if TYPE_CHECKING:
    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.crawl_record import CrawlRecord
    from bigcrawl.store.objects import ObjectStore
    from bigcrawl.url.domain import PublicSuffixes
    from bigcrawl.url.key import Keys, PldKey

NOT_JOINED = "the node has not joined the crawl"
HOSTS_CACHED: Final = 1 << 15


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
        self._partition_of = _not_joined

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
        self._partition_of = lru_cache(HOSTS_CACHED)(lambda host: partition_of(pld_of(host), partitions))

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

    def partition_of_host(self, host: str) -> int:
        return self._partition_of(host)


def _not_joined(host: str) -> int:
    raise AssertionError(NOT_JOINED)


def _objects_at(url: str) -> ObjectStore:
    from bigcrawl.store.objects import ObjectStore

    return ObjectStore(url)
