"""The crawl record determines a URL's key and partition, and never changes during the crawl.

Redis and the state directory store it with the same random id. A second id belongs to the directory: without a store,
all nodes must use the directory in which the crawl was begun. A node whose settings contradict the record does not
start.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isal import isal_zlib

from bigcrawl.exceptions import ConfigError, CorruptionError, LostCrawlError
from bigcrawl.json_text import read_json
from bigcrawl.private_files import disk_error, make_private_directory, replaced_error, whole_file
from bigcrawl.redisdb.keys import CrawlKeys, partition_keys
from bigcrawl.scheduler.crawl.alike import require_spider
from bigcrawl.scheduler.partition.directory import is_unused
from bigcrawl.scheduler.records.queued_url import BATCH_VERSION
from bigcrawl.url.canonical import CANONICAL_VERSION
from bigcrawl.url.domain import PublicSuffixes, bundled_text
from bigcrawl.url.key import HASH_SEED, SECRET_BYTES, Keys

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.config import CrawlConfig
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.store.objects import ObjectStore

logger = logging.getLogger(__name__)

RECORD_FILE = "crawl.json"
BEGAN = "began_ms"
_MADE_ONCE = ("suffixes", "hash_seed", "id")
FILE_WAIT_S = 2.0  # a shared mount may show another machine's new file late
_SETTING = {"partitions": "BIGCRAWL_PARTITIONS", "private_suffixes": "BIGCRAWL_PRIVATE_SUFFIXES"}


@dataclass(frozen=True, slots=True)
class CrawlRecord:
    crawl_id: str
    keys: Keys
    suffixes: PublicSuffixes
    is_new: bool = False


async def open_record(
    client: RedisClient, config: CrawlConfig, objects: ObjectStore | None = None, *, is_joined: bool = False
) -> CrawlRecord:
    """Read or create the crawl's record, and compare it with this node's settings.

    With `is_joined`, the state directory must exist.

    Raises:
        ConfigError: spider, partition count, format, store or directory differ, or Redis has lost the crawl.
    """
    key = CrawlKeys(config.name).crawl
    if is_joined and not (config.crawl_dir / RECORD_FILE).exists():
        raise replaced_error(config.crawl_dir)
    stored = await _read_redis(client, key)
    if "id" not in stored:
        try:
            return await _open(client, config, objects, stored)
        except LostCrawlError:
            # Another node may have begun the crawl meanwhile.
            stored = await _read_redis(client, key)
            if "id" not in stored:
                raise
    return await _open(client, config, objects, stored)


async def _open(
    client: RedisClient, config: CrawlConfig, objects: ObjectStore | None, stored: dict[str, bytes]
) -> CrawlRecord:
    key = CrawlKeys(config.name).crawl
    require_spider(config, stored)  # first, because another spider's settings may differ as well
    wanted = _fixed_fields(config)
    path = config.crawl_dir / RECORD_FILE
    local = _read_file(path)
    is_new = "id" not in stored
    kept = None
    if objects is not None:
        from bigcrawl.scheduler.crawl.stored_record import find_stored, keep_in_store

        kept = await find_stored(objects, config.name, stored)
    elif "store" in stored:
        url = stored["store"].decode()
        raise ConfigError(f"crawl {config.name!r} has its state in the store {url}: set BIGCRAWL_STORE_URL to it")
    if not stored.keys() >= {*wanted, *_MADE_ONCE}:
        if local is not None and "id" not in stored:
            await _require_unused(local, wanted, config)
        stored = await _create(client, key, wanted, config, local or kept or {})
    _compare(wanted, {name: stored[name].decode() for name in wanted if name in stored}, config)
    crawl_id = stored["id"].decode()
    if objects is not None:
        record = {"id": crawl_id, "hash_seed": stored["hash_seed"].decode(), **wanted}
        await keep_in_store(objects, config.name, client, key, kept, record)
    elif local is None and await _is_committed(client, config):
        local = await _file_of_another_node(path, config)
    made = None
    if local is None:
        made = {"id": crawl_id, "hash_seed": stored["hash_seed"].decode(), "directory": uuid.uuid4().hex, **wanted}
        local = _make_file(path, made)
    if local.get("id") != crawl_id:
        raise ConfigError(
            f"{config.crawl_dir} belongs to another crawl than {config.name!r} in this Redis: give this one "
            f"its own BIGCRAWL_STATE_DIR or BIGCRAWL_CRAWL"
        )
    if objects is None and not await _is_the_directory(client, key, local):
        if local is made:
            path.unlink(missing_ok=True)
        raise ConfigError(
            f"crawl {config.name!r} was begun in another directory than {config.crawl_dir}: give all its nodes the "
            f"same BIGCRAWL_STATE_DIR, on a disk that their machines share, or a BIGCRAWL_STORE_URL; or start from "
            f"scratch with BIGCRAWL_FRESH=1"
        )
    text = isal_zlib.decompress(stored["suffixes"])
    suffixes = PublicSuffixes.from_text(text, private=config.private_suffixes)
    return CrawlRecord(crawl_id, keys_of(stored["hash_seed"], config.name), suffixes, is_new)


async def has_other_code(client: RedisClient, name: str, spider: str, digest: str) -> bool:
    """Return whether a spider's code differs from that of its first run in this crawl, which is recorded here."""
    key, field = CrawlKeys(name).crawl, f"code:{spider}"
    _, noted = await client.commands([("HSETNX", key, field, digest), ("HGET", key, field)])
    return bool(noted != digest.encode())


def keys_of(hash_seed: bytes, name: str) -> Keys:
    text = hash_seed.decode("ascii", "replace")
    if text == str(HASH_SEED):
        return Keys(b"")
    with suppress(ValueError):
        if len(secret := bytes.fromhex(text)) == SECRET_BYTES:
            return Keys(secret)
    raise ConfigError(f"crawl {name!r} was begun by another version of bigcrawl: continue with that version")


def _fixed_fields(config: CrawlConfig) -> dict[str, str]:
    return {
        "partitions": str(config.partitions),
        "private_suffixes": str(config.private_suffixes),
        "canonical_version": str(CANONICAL_VERSION),
        "batch_version": str(BATCH_VERSION),
    }


async def _require_unused(local: dict[str, str], wanted: dict[str, str], config: CrawlConfig) -> None:
    """Let a crawl that Redis has lost start over, but only if it has fetched no page."""
    _compare(wanted, {name: value for name, value in local.items() if name != "id"}, config)
    directories = list(config.crawl_dir.glob("p[0-9]*"))
    if not await asyncio.to_thread(lambda: all(map(is_unused, directories))):
        raise LostCrawlError(
            f"{config.crawl_dir} holds crawl {config.name!r}, but the Redis does not know it: point "
            f"BIGCRAWL_REDIS_URL at the Redis of that crawl, or start from scratch with BIGCRAWL_FRESH=1"
        )
    logger.warning(
        "the Redis has lost crawl %(name)s, which had not fetched anything yet: it starts from scratch",
        {"name": config.name},
    )


def keys_in(crawl_dir: Path) -> Keys:
    """Return the keys of the crawl in a directory, without Redis. Raises ConfigError if there is none."""
    record = _read_file(crawl_dir / RECORD_FILE)
    if record is None:
        raise ConfigError(f"{crawl_dir} has no record of a crawl")
    return keys_of(record.get("hash_seed", "").encode(), crawl_dir.name)


async def _create(
    client: RedisClient, key: str, wanted: dict[str, str], config: CrawlConfig, local: dict[str, str]
) -> dict[str, bytes]:
    """Write the record's missing fields. Nodes that start together use the id and secret that arrive first.

    An existing file provides both, because keys made with the secret may be on disk.
    """
    suffixes = isal_zlib.compress(bundled_text(), 3)
    rows: list[tuple[str | bytes, ...]] = [("HSETNX", key, "suffixes", suffixes)]
    rows += [("HSETNX", key, name, value) for name, value in wanted.items()]
    rows.append(("HSETNX", key, BEGAN, str(client.now_ms())))
    rows.append(("HSETNX", key, "hash_seed", local.get("hash_seed") or new_secret().hex()))
    rows.append(("HSETNX", key, "id", local.get("id") or uuid.uuid4().hex))
    await client.commands(rows)
    return await _read_redis(client, key)


def new_secret() -> bytes:
    return secrets.token_bytes(SECRET_BYTES)


async def _read_redis(client: RedisClient, key: str) -> dict[str, bytes]:
    reply = await client.command("HGETALL", key)
    return {name.decode(): value for name, value in zip(reply[::2], reply[1::2], strict=True)}


async def _is_the_directory(client: RedisClient, key: str, local: dict[str, str]) -> bool:
    """Return whether the crawl was begun in this record's directory. The first node decides."""
    directory = local.get("directory", local["id"])
    _, noted = await client.commands([("HSETNX", key, "directory", directory), ("HGET", key, "directory")])
    return bool(noted == directory.encode())


async def _is_committed(client: RedisClient, config: CrawlConfig) -> bool:
    states = [partition_keys(config.name, partition).state for partition in range(config.partitions)]
    return any(await client.commands([("HGET", state, "committed") for state in states]))


async def _file_of_another_node(path: Path, config: CrawlConfig) -> dict[str, str]:
    """Wait for another node's record, so that an existing crawl is never opened in an empty directory."""
    wait_until = time.monotonic() + FILE_WAIT_S
    while (found := _read_file(path)) is None:
        if time.monotonic() >= wait_until:
            raise ConfigError(
                f"the Redis holds crawl {config.name!r}, but its files are not in {config.crawl_dir}: point "
                f"BIGCRAWL_STATE_DIR at them, on a disk that its nodes share, or begin it with a BIGCRAWL_STORE_URL, "
                f"or choose another BIGCRAWL_CRAWL, or start from scratch with BIGCRAWL_FRESH=1"
            )
        await asyncio.sleep(0.05)
    return found


def _compare(wanted: dict[str, str], stored: dict[str, str], config: CrawlConfig) -> None:
    for name, value in wanted.items():
        if stored.get(name) != value:
            label = _SETTING.get(name, name)
            raise ConfigError(
                f"{label} is {value}, but crawl {config.name!r} was begun with {stored.get(name)}: it is fixed for the "
                f"crawl's life; set it back, or start another crawl"
            )


def _read_file(path: Path) -> dict[str, str] | None:
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise disk_error(f"cannot read the state directory {path.parent}", error, "BIGCRAWL_STATE_DIR") from error
    try:
        record = read_json(text)
    except ValueError:
        raise CorruptionError(path, 0, "a JSON crawl record", repr(text[:40])) from None
    if not isinstance(record, dict):
        raise CorruptionError(path, 0, "a JSON crawl record", repr(text[:40]))
    return record


def _make_file(path: Path, record: dict[str, str]) -> dict[str, str]:
    """Write the record and return it, or the record of a node that was faster."""
    try:
        make_private_directory(path.parent)
        try:
            with whole_file(path, place=os.link) as file:
                file.write(json.dumps(record).encode())
        except FileExistsError:
            record = _read_file(path) or record
    except OSError as error:
        raise disk_error(f"cannot write the state directory {path.parent}", error, "BIGCRAWL_STATE_DIR") from error
    return record
