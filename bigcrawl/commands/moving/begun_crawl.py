"""A crawl that is imported into: opened, or begun, and then it fetches nothing before the import is complete."""

from __future__ import annotations

import base64
import contextlib
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.commands.moving.export import RECORD_FIELDS
from bigcrawl.commands.opened_crawl import OpenedCrawl
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.embedded import EmbeddedServer
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.crawl_record import open_record
from bigcrawl.scheduler.crawl.survey import FinishCheck
from bigcrawl.scheduler.node.control import PAUSED
from bigcrawl.store.objects import Objects

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from bigcrawl.config import Config

IMPORTING: Final = "importing"
"""The field of the crawl record that says that an import has begun or paused the crawl, and is not complete."""


@contextlib.asynccontextmanager
async def begun(
    config: Config, server: str, record: dict[str, Any] | None = None, *, pauses: bool = False
) -> AsyncIterator[OpenedCrawl]:
    """Open the crawl, begun if it does not exist. After an error it stays paused, for the import to be repeated.

    Args:
        config: of the crawl.
        server: the URL of its Redis.
        record: the record of an exported crawl, whose keys it has; None if it may have others.
        pauses: whether a crawl that exists is paused too.

    Raises:
        ConfigError: the crawl makes its keys in another way, or cannot be begun here.
        TransientStoreError: Redis or the store failed.
    """
    client = RedisClient(server)
    try:
        await _begin(config, client, record)
        if pauses and await client.command("HGET", CrawlKeys(config.crawl.name).control, PAUSED) is None:
            await _pause(client, CrawlKeys(config.crawl.name))
        crawl = await OpenedCrawl.of(config, client)
        yield crawl
        await FinishCheck(client, config.crawl.name, crawl.partitions).take_back()
        await _end(crawl)
    finally:
        await client.close()


@contextlib.contextmanager
def server_for_import(config: Config) -> Iterator[str]:
    """Yield the URL of the crawl's Redis. An embedded server is started, and made if the crawl is new."""
    if config.crawl.redis_url:
        yield config.crawl.redis_url
        return
    server = EmbeddedServer(config.crawl.crawl_dir / "redis")
    url = server.start()
    try:
        yield url
    finally:
        server.leave()


async def _begin(config: Config, client: RedisClient, record: dict[str, Any] | None) -> None:
    """Begin the crawl unless it exists; with a record, its keys must be made in the same way."""
    name = config.crawl.name
    keys = CrawlKeys(name)
    wanted: dict[str, bytes] = {}
    if record is not None:
        wanted = {field: str(record.get(field, "")).encode() for field in RECORD_FIELDS}
        try:
            wanted["suffixes"] = base64.b64decode(wanted["suffixes"], validate=True)
        except ValueError as error:
            raise ConfigError(f"the file's first line has no list of public suffixes ({error}): export again") from None
        _compare(config, wanted)
    if await client.command("HGET", keys.crawl, "id") is None:
        await _pause(client, keys)
        made = [("HSETNX", keys.crawl, field, wanted[field]) for field in ("hash_seed", "suffixes") if wanted]
        await client.commands(made)
    objects = Objects(config.store.url) if config.store.url else None
    await open_record(client, config.crawl, objects)
    found = dict(zip(RECORD_FIELDS, await client.command("HMGET", keys.crawl, *RECORD_FIELDS), strict=True))
    if wanted and found != wanted:
        other = next(name for name in RECORD_FIELDS if found[name] != wanted[name])
        raise ConfigError(
            f"crawl {name!r} is there and makes its keys in another way than the exported one ({other}): import "
            f"into a new crawl, with another BIGCRAWL_CRAWL, or add the URLs of the file with `scrapy frontier add`"
        )


async def _pause(client: RedisClient, keys: CrawlKeys) -> None:
    """Pause the crawl until `_end`; one that the operator has paused is left alone."""
    await client.commands([("HSET", keys.control, PAUSED, "1"), ("HSET", keys.crawl, IMPORTING, "1")])


def _compare(config: Config, wanted: dict[str, bytes]) -> None:
    """Refuse settings that are not those of the exported crawl."""
    settings = {"partitions": "BIGCRAWL_PARTITIONS", "private_suffixes": "BIGCRAWL_PRIVATE_SUFFIXES"}
    for name, setting in settings.items():
        value, was = str(getattr(config.crawl, name)), wanted[name].decode()
        if was != value:
            raise ConfigError(f"{setting} is {value}, but was {was} in the exported crawl: set it so")


async def _end(crawl: OpenedCrawl) -> None:
    """Let a crawl run that was begun or paused by the import."""
    keys = CrawlKeys(crawl.config.crawl.name)
    if await crawl.client.command("HGET", keys.crawl, IMPORTING) is not None:
        await crawl.client.commands([("HDEL", keys.control, PAUSED), ("HDEL", keys.crawl, IMPORTING)])
