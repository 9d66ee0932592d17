"""Deletes a crawl's state: directory, objects in the store, keys in the user's Redis. Pages and feeds remain."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.exceptions import ConfigError
from bigcrawl.json_text import read_json
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.embedded import EmbeddedServer
from bigcrawl.redisdb.keys import KNOWN, CrawlKeys, all_keys
from bigcrawl.scheduler.crawl.crawl_record import RECORD_FILE
from bigcrawl.scheduler.crawl.membership import Membership
from bigcrawl.scheduler.crawl.stored_record import delete_stored
from bigcrawl.store.objects import ObjectStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from bigcrawl.config import Config

SCAN_COUNT = 1_000


class Deleted(NamedTuple):
    directory: bool
    keys: int
    objects: int = 0


async def delete_crawl(config: Config) -> Deleted:
    """Delete all state of a crawl, if any; raise ConfigError, deleting nothing, if nodes live or ids differ."""
    crawl = config.crawl
    directory = crawl.crawl_dir
    membership = Membership(config, "deletion")
    embedded = EmbeddedServer(directory / "redis")
    is_embedded = (directory / "redis").is_dir()
    if crawl.redis_url is None and not is_embedded and (directory / RECORD_FILE).exists():
        raise ConfigError(
            f"crawl {crawl.name!r} is stored in another Redis than the embedded one: set BIGCRAWL_REDIS_URL to it"
        )
    if membership.is_any_locked() or not await asyncio.to_thread(embedded.stop_if_unused):
        raise ConfigError(f"crawl {crawl.name!r} is running: stop its nodes before deleting it")
    keys = 0
    if crawl.redis_url is not None:
        async with _client(crawl.redis_url) as client:
            keys = await _delete_keys(client, config, membership)
    stored = (
        await asyncio.to_thread(delete_stored, ObjectStore(config.store.url), crawl.name) if config.store.url else 0
    )
    found = directory.is_dir()
    if found:
        try:
            await asyncio.to_thread(shutil.rmtree, directory)
        except OSError as error:
            raise ConfigError(f"cannot delete {directory}: {error}; check BIGCRAWL_STATE_DIR") from error
    return Deleted(found, keys, stored)


async def _delete_keys(client: RedisClient, config: Config, membership: Membership) -> int:
    name = config.crawl.name
    crawl_id = await client.command("HGET", CrawlKeys(name).crawl, "id")
    directory = config.crawl.crawl_dir
    if crawl_id is not None and _id_in(directory) not in ("", crawl_id.decode()):
        raise ConfigError(f"{directory} belongs to another crawl than {name!r} in this Redis: nothing is deleted")
    if living := await membership.others(client):
        raise ConfigError(
            f"crawl {name!r} is running: stop its nodes before deleting it, or wait for "
            f"{config.frontier.lease_ms / 1000:g} s if they are dead: {', '.join(sorted(living))}"
        )
    deleted = 0
    async for keys in client.keys(all_keys(name), SCAN_COUNT):
        deleted += sum(await client.commands([("UNLINK", key) for key in keys]))
    await client.command("HDEL", KNOWN, name)
    return deleted


def _id_in(directory: Path) -> str:
    try:
        return str(read_json((directory / RECORD_FILE).read_text())["id"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""


@asynccontextmanager
async def _client(url: str) -> AsyncIterator[RedisClient]:
    client = RedisClient(url)
    try:
        yield client
    finally:
        await client.close()
