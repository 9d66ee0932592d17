"""The crawl record in the store shows that store, Redis and directory belong to the same crawl.

`<crawl>/crawl.json` is written before the first stored state of a partition (a point) and deleted after the last. The
field `store` in Redis keeps a node without a store from starting with an old copy on its disk. The same URL may mean
different stores on different nodes. So the first node puts an object `<crawl>/store-<id>` and then names it in Redis.
Other nodes start only if their store has it.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from bigcrawl.exceptions import ConfigError, CorruptionError, LostCrawlError
from bigcrawl.json_text import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.store.objects import ObjectStore

STORED_RECORD = "crawl.json"
_FIELD = "store"
_ID_FIELD = "store_id"
_ID_PREFIX = "store-"
SEEN_S = 2.0  # a mount may show another machine's new object late
_LOOK_S = 0.1
_DELETED_AT_ONCE = 16


async def find_stored(objects: ObjectStore, crawl: str, in_redis: Mapping[str, bytes]) -> dict[str, str] | None:
    """Return the crawl record in the store, if any; raise ConfigError if only one of store and Redis has it."""
    data = await asyncio.to_thread(objects.get, _name(crawl))
    if data is None and _FIELD in in_redis:
        raise ConfigError(
            f"{objects.url} does not have crawl {crawl!r}, which was begun with the store "
            f"{in_redis[_FIELD].decode()}: check BIGCRAWL_STORE_URL, and that it is mounted, or start from scratch "
            f"with BIGCRAWL_FRESH=1"
        )
    if "id" not in in_redis and await asyncio.to_thread(_has_points, objects, crawl):
        raise LostCrawlError(
            f"{objects.url} holds crawl {crawl!r}, but the Redis does not know it: point BIGCRAWL_REDIS_URL at the "
            f"Redis of that crawl, or start from scratch with BIGCRAWL_FRESH=1"
        )
    return None if data is None else _decoded(data, objects, crawl)


async def keep_in_store(
    objects: ObjectStore,
    crawl: str,
    client: RedisClient,
    key: str,
    kept: Mapping[str, str] | None,
    record: Mapping[str, str],
) -> None:
    """Write the record into the store, and the store into Redis; a refused node leaves nothing. Raises ConfigError."""
    _require_same(kept or record, record, objects, crawl)
    await _require_the_store(objects, crawl, client, key)
    if kept is None:
        await asyncio.to_thread(objects.put, _name(crawl), json.dumps(dict(record)).encode())
        # A node of another Redis may have written it at the same time.
        again = await asyncio.to_thread(objects.get, _name(crawl))
        _require_same(_decoded(again or b"", objects, crawl), record, objects, crawl)
    await client.command("HSETNX", key, _FIELD, objects.url)


def _require_same(kept: Mapping[str, str], record: Mapping[str, str], objects: ObjectStore, crawl: str) -> None:
    if kept.get("id") != record["id"]:
        raise ConfigError(
            f"{objects.url} holds another crawl {crawl!r} than this Redis: give this one its own BIGCRAWL_STORE_URL or "
            f"BIGCRAWL_CRAWL"
        )


async def _require_the_store(objects: ObjectStore, crawl: str, client: RedisClient, key: str) -> None:
    """Require that this store has the id that the first node set in Redis. May be repeated after a lost reply."""
    named = await client.command("HGET", key, _ID_FIELD)
    if named is None:
        own = uuid.uuid4().hex
        await asyncio.to_thread(objects.put, _id_name(crawl, own), b"")
        _, named = await client.commands([("HSETNX", key, _ID_FIELD, own), ("HGET", key, _ID_FIELD)])
        if named != own.encode():
            await asyncio.to_thread(objects.delete, [_id_name(crawl, own)])
    if not await _is_seen(objects, _id_name(crawl, named.decode())):
        raise ConfigError(
            f"crawl {crawl!r} was begun in a store other than the one at {objects.url}: give all its nodes one "
            f"BIGCRAWL_STORE_URL, and if that is a directory, one that their machines share"
        )
    objects.require_mark(_id_name(crawl, named.decode()))


async def _is_seen(objects: ObjectStore, name: str) -> bool:
    until = time.monotonic() + SEEN_S
    while await asyncio.to_thread(objects.get, name) is None:
        if time.monotonic() >= until:
            return False
        await asyncio.sleep(_LOOK_S)
    return True


def _has_points(objects: ObjectStore, crawl: str) -> bool:
    return any(name != _name(crawl) and not name.startswith(_id_name(crawl, "")) for name in objects.list(crawl))


def delete_stored(objects: ObjectStore, crawl: str) -> int:
    """Delete all objects of a crawl, its record last, and return their number. The call may be repeated."""
    names = list(objects.list(crawl))
    record = _name(crawl)
    with ThreadPoolExecutor(_DELETED_AT_ONCE) as workers:
        list(workers.map(lambda name: objects.delete([name]), [name for name in names if name != record]))
    objects.delete([record])
    return len(names)


def _name(crawl: str) -> str:
    return f"{crawl}/{STORED_RECORD}"


def _id_name(crawl: str, store_id: str) -> str:
    return f"{crawl}/{_ID_PREFIX}{store_id}"


def _decoded(data: bytes, objects: ObjectStore, crawl: str) -> dict[str, str]:
    try:
        record = read_json(data)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise CorruptionError(f"{objects.url}/{_name(crawl)}", 0, "a JSON crawl record", repr(data[:40]))
    return record
