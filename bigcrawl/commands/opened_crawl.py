"""A crawl opened by a command: its Redis, and where a URL belongs in it.

A command is not a node: it claims no partition and fetches no URL.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, NamedTuple, Self

from isal import isal_zlib

from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.embedded import EmbeddedServer
from bigcrawl.redisdb.keys import CrawlKeys, partition_keys
from bigcrawl.scheduler.crawl.arrivals import Arrivals
from bigcrawl.scheduler.crawl.crawl_record import RECORD_FILE, keys_of
from bigcrawl.url.canonical import CANONICAL_VERSION, authority_of, canonicalize, host_of
from bigcrawl.url.domain import PublicSuffixes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator
    from pathlib import Path

    from bigcrawl.config import Config
    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.url.key import Keys, PldKey, UrlKey

_FIELDS = ("partitions", "private_suffixes", "canonical_version", "hash_seed", "suffixes")


class Place(NamedTuple):
    """Where a URL belongs."""

    url: str
    key: UrlKey
    host: str
    authority: str
    pld: str
    pld_key: PldKey
    partition: int


class OpenedCrawl:
    """A crawl and a connection to its Redis; made by `async with opened(config)`."""

    def __init__(
        self, config: Config, client: RedisClient, partitions: int, suffixes: PublicSuffixes, url_keys: Keys
    ) -> None:
        self.url_keys = url_keys
        self.config = config
        self.client = client
        self.partitions = partitions
        self.suffixes = suffixes

    def __repr__(self) -> str:
        return f"<OpenedCrawl {self.config.crawl.name} partitions={self.partitions}>"

    @classmethod
    async def of(cls, config: Config, client: RedisClient) -> Self:
        """Read the crawl record.

        Raises:
            ConfigError: the Redis does not know the crawl, or another version of bigcrawl began it.
        """
        name = config.crawl.name
        values = await client.command("HMGET", CrawlKeys(name).crawl, *_FIELDS)
        if None in values:
            raise ConfigError(f"the Redis knows no crawl {name!r}; {_known(config)}")
        partitions, private, canonical_version, seed, suffixes = values
        if int(canonical_version) != CANONICAL_VERSION:
            raise ConfigError(f"crawl {name!r} was begun by another version of bigcrawl; ask it with that one")
        return cls(config, client, int(partitions), _suffixes_of(suffixes, private == b"True"), keys_of(seed, name))

    def place_of(self, url: str) -> Place:
        """Return where a URL, in any spelling, belongs.

        Raises:
            UrlError: it is not an http or https URL.
        """
        canonical = canonicalize(url, self.config.frontier.url_bytes_max)
        host = host_of(canonical)
        pld = self.suffixes.pld(host)
        makes = self.url_keys
        partition, pld_key = self.partition_of_host(host), makes.of_pld(pld)
        return Place(canonical, makes.of_url(canonical), host, authority_of(canonical), pld, pld_key, partition)

    def partition_of_host(self, host: str) -> int:
        """Return the number of the partition that a host's URLs are in."""
        return self.url_keys.partition_of(self.suffixes.pld(host), self.partitions)

    def keys(self, partition: int) -> PartitionKeys:
        """Return the Redis keys of a partition."""
        return partition_keys(self.config.crawl.name, partition)

    async def tell_owner(self, partition: int, field: bytes, data: bytes) -> None:
        """Put one field, see `records.inbox_entry`, into a partition's inbox, whether or not it has an owner now."""
        await self.client.command("XADD", self.keys(partition).inbox, "*", field, data)
        await self.note_arrivals([partition])

    async def note_arrivals(self, partitions: Iterable[int]) -> None:
        """Have the owners of partitions look at them: something in Redis was changed behind their backs."""
        await Arrivals(self.client, self.config.crawl.name).tell(partitions)

    async def nodes(self) -> set[str]:
        """Return the ids of the nodes whose last heartbeat is not older than a lease."""
        beats = CrawlKeys(self.config.crawl.name).beats
        oldest_ms = self.client.now_ms() - self.config.frontier.lease_ms
        return {name.decode() for name in await self.client.command("ZRANGEBYSCORE", beats, oldest_ms, "+inf")}

    def directory(self, partition: int) -> Path:
        """Return the directory of a partition."""
        return self.config.crawl.crawl_dir / f"p{partition:04d}"


@functools.lru_cache(maxsize=1)
def _suffixes_of(compressed: bytes, private: bool) -> PublicSuffixes:
    """Read the crawl's list of suffixes: tens of milliseconds, so once for a process that opens the crawl often."""
    return PublicSuffixes.from_text(isal_zlib.decompress(compressed), private=private)


def ids_of(word: str, nodes: Iterable[str]) -> list[str]:
    """Return the nodes that a word means: by their id, or by the part of it that BIGCRAWL_NODE names."""
    return sorted(node for node in nodes if word in (node, node.rpartition("-")[0]))


def crawls_here(config: Config) -> list[str]:
    """Return the names of the crawls in the state directory."""
    return sorted(path.parent.name for path in config.crawl.state_dir.glob(f"*/{RECORD_FILE}"))


def _known(config: Config) -> str:
    """Name the crawls that exist, for an error about one that does not."""
    where = f"in {config.crawl.state_dir.absolute()}"
    if names := crawls_here(config):
        return f"{where} there are: {', '.join(names)}; choose with -s BIGCRAWL_CRAWL="
    return f"{where} there is none; see BIGCRAWL_CRAWL and BIGCRAWL_STATE_DIR"


@contextlib.contextmanager
def server_of(config: Config) -> Iterator[str]:
    """Yield the URL of the crawl's Redis; a stopped embedded server is started for the duration.

    Raises:
        ConfigError: there is no such crawl here, or its server does not start.
    """
    if config.crawl.redis_url:
        yield config.crawl.redis_url
        return
    directory = config.crawl.crawl_dir
    if not (directory / RECORD_FILE).exists():
        raise ConfigError(f"there is no crawl {config.crawl.name!r}; {_known(config)}")
    server = EmbeddedServer(directory / "redis")
    url = server.start()
    try:
        yield url
    finally:
        server.leave()


@contextlib.asynccontextmanager
async def opened(config: Config, url: str) -> AsyncIterator[OpenedCrawl]:
    """Open the crawl in the Redis at this URL.

    Raises:
        ConfigError: see `OpenedCrawl.of`.
        TransientStoreError: Redis does not answer.
    """
    client = RedisClient(url)
    try:
        yield await OpenedCrawl.of(config, client)
    finally:
        await client.close()
