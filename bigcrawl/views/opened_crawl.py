"""Opens a crawl in a process that is not a node: it claims no partition and fetches no URL."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, Self, TypeAlias, TypeVar, cast

from isal import isal_zlib

from bigcrawl.exceptions import ConfigError
from bigcrawl.logs.plain import excerpt_of
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.embedded import EmbeddedServer
from bigcrawl.redisdb.keys import CrawlKeys, PartitionKeys, partition_keys
from bigcrawl.scheduler.crawl.crawl_record import RECORD_FILE, keys_of
from bigcrawl.scheduler.crawl.joined_crawl import Arrivals
from bigcrawl.scheduler.crawl.node_reports import as_its_nodes
from bigcrawl.scheduler.crawl.survey import FinishCheck
from bigcrawl.url.canonical import CANONICAL_VERSION, authority_of, canonicalize, host_of, refuse_credentials
from bigcrawl.url.domain import PublicSuffixes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
    from pathlib import Path

    from bigcrawl.config import Config
    from bigcrawl.url.key import Keys, PldKey, UrlKey

_P = ParamSpec("_P")
_T = TypeVar("_T")
EVENT_CHARACTERS = 300
_FIELDS = ("partitions", "private_suffixes", "canonical_version", "hash_seed", "suffixes")


class UrlPlace(NamedTuple):
    url: str
    key: UrlKey
    host: str
    authority: str
    pld: str
    pld_key: PldKey
    partition: int


class OpenedCrawl:
    """A crawl and a connection to its Redis, from `open_crawl`. Its `config` has the settings of the crawl's nodes."""

    def __init__(
        self, config: Config, client: RedisClient, partitions: int, suffixes: PublicSuffixes, url_keys: Keys
    ) -> None:
        self.url_keys = url_keys
        self.config = config
        self.crawl_keys = CrawlKeys(config.crawl.name)
        self.client = client
        self.partitions = partitions
        self.suffixes = suffixes

    @classmethod
    async def of(cls, config: Config, client: RedisClient) -> Self:
        """Read the crawl record. Raise ConfigError if the crawl is unknown, or was begun by another version."""
        name = config.crawl.name
        values = await client.command("HMGET", CrawlKeys(name).crawl, *_FIELDS)
        if None in values:
            raise ConfigError(f"the Redis knows no crawl {name!r}; {_known_crawls_text(config)}")
        partitions, private, canonical_version, seed, suffixes = values
        if int(canonical_version) != CANONICAL_VERSION:
            raise ConfigError(f"crawl {name!r} was begun by another version of bigcrawl; use that version")
        config = await as_its_nodes(config, client)
        return cls(config, client, int(partitions), _suffixes_of(suffixes, private == b"True"), keys_of(seed, name))

    def place_of(self, url: str) -> UrlPlace:
        refuse_credentials(url)
        canonical = canonicalize(url, self.config.frontier.url_bytes_max)
        host = host_of(canonical)
        pld = self.suffixes.pld(host)
        makes = self.url_keys
        partition, pld_key = self.partition_of_host(host), makes.of_pld(pld)
        return UrlPlace(canonical, makes.of_url(canonical), host, authority_of(canonical), pld, pld_key, partition)

    def place_of_site(self, word: str) -> UrlPlace:
        """Return the place of a host or PLD, given its name or any URL in it; raise UrlError for any other word."""
        return self.place_of(word if "://" in word else f"http://{word}/")

    def partition_of_host(self, host: str) -> int:
        return self.url_keys.partition_of(self.suffixes.pld(host), self.partitions)

    def keys(self, partition: int) -> PartitionKeys:
        return partition_keys(self.config.crawl.name, partition)

    async def send_to_owner(self, partition: int, field: bytes, data: bytes) -> None:
        """Add an entry with one field (see `records.inbox_entry`) to a partition's inbox, with or without an owner."""
        await self.client.command("XADD", self.keys(partition).inbox, "*", field, data)
        await self.record_arrivals([partition])

    async def record_arrivals(self, partitions: Iterable[int]) -> None:
        await Arrivals(self.client, self.config.crawl.name).tell(partitions)

    async def record_event(self, kind: str, text: str = "") -> None:
        shown = excerpt_of(text, EVENT_CHARACTERS)
        await self.client.run([scripts.record_event(self.crawl_keys, self.client.now_ms(), kind, text=shown)])

    async def unmark_finished(self) -> None:
        """Let a finished crawl continue at its next start, because it may have URLs to fetch again."""
        await FinishCheck(self.client, self.config.crawl.name, self.partitions).revoke_end()

    async def nodes(self) -> set[str]:
        oldest_ms = self.client.now_ms() - self.config.frontier.lease_ms
        living = await self.client.command("ZRANGEBYSCORE", self.crawl_keys.beats, oldest_ms, "+inf")
        return {name.decode() for name in living}

    def directory(self, partition: int) -> Path:
        return self.config.crawl.crawl_dir / f"p{partition:04d}"


@functools.lru_cache(maxsize=1)
def _suffixes_of(compressed: bytes, private: bool) -> PublicSuffixes:
    """Parse the crawl's suffix list, cached because it takes tens of milliseconds."""
    return PublicSuffixes.from_text(isal_zlib.decompress(compressed), private=private)


def ids_of(word: str, nodes: Iterable[str]) -> list[str]:
    """Return the nodes whose id, or whose BIGCRAWL_NODE, is this word."""
    return sorted(node for node in nodes if word in (node, node.rpartition("-")[0]))


def crawls_here(config: Config) -> list[str]:
    return sorted(path.parent.name for path in config.crawl.state_dir.glob(f"*/{RECORD_FILE}"))


def _known_crawls_text(config: Config) -> str:
    where = f"in {config.crawl.state_dir.absolute()}"
    if names := crawls_here(config):
        return f"{where} there are: {', '.join(names)}; choose with -s BIGCRAWL_CRAWL="
    return f"{where} there is none; see BIGCRAWL_CRAWL and BIGCRAWL_STATE_DIR"


KeptQuery: TypeAlias = "Callable[[Callable[[OpenedCrawl], Awaitable[Any]]], Any]"
_kept_query: ContextVar[KeptQuery | None] = ContextVar("kept_query", default=None)


@contextlib.contextmanager
def server_of(config: Config, *, may_begin: bool = False) -> Iterator[str]:
    """Yield the crawl's Redis, started and stopped if embedded; `may_begin` permits a crawl that does not exist."""
    if config.crawl.redis_url:
        yield config.crawl.redis_url
        return
    directory = config.crawl.crawl_dir
    if not (may_begin or (directory / RECORD_FILE).exists()):
        raise ConfigError(f"there is no crawl {config.crawl.name!r}; {_known_crawls_text(config)}")
    server = EmbeddedServer(directory / "redis")
    url = server.start()
    try:
        yield url
    finally:
        server.leave()


@contextlib.asynccontextmanager
async def open_crawl(config: Config, url: str) -> AsyncIterator[OpenedCrawl]:
    client = RedisClient(url)
    try:
        yield await OpenedCrawl.of(config, client)
    finally:
        await client.close()


def in_crawl(
    config: Config, work: Callable[Concatenate[OpenedCrawl, _P], Awaitable[_T]], *args: _P.args, **options: _P.kwargs
) -> _T:
    """Run a coroutine with the crawl: newly opened, or the one that `keeping_open` provides."""

    async def done(url: str) -> _T:
        async with open_crawl(config, url) as crawl:
            return await work(crawl, *args, **options)

    if (query := _kept_query.get()) is not None:
        return cast("_T", query(lambda crawl: work(crawl, *args, **options)))
    with server_of(config) as url:
        return asyncio.run(done(url))


@contextlib.contextmanager
def keeping_open(query: KeptQuery | None) -> Iterator[None]:
    """Let `in_crawl` use a crawl that stays open, in this block and thread; with None, it opens the crawl again."""
    token = _kept_query.set(query)
    try:
        yield
    finally:
        _kept_query.reset(token)
