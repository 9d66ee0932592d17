"""The crawl record: what decides a URL's key and place, fixed for the crawl's life.

It is kept in Redis and, with the same random id, in the crawl's state directory. A node that differs does
not start and says in what; a directory and a Redis that do not belong together are told apart by the id.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isal import isal_zlib

from bigcrawl.exceptions import ConfigError, CorruptionError
from bigcrawl.redisdb.keys import CrawlKeys, partition_keys
from bigcrawl.scheduler.queued_url import BATCH_VERSION
from bigcrawl.url.canonical import CANONICAL_VERSION
from bigcrawl.url.domain import PublicSuffixes
from bigcrawl.url.key import HASH_SEED

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.config import CrawlConfig
    from bigcrawl.redisdb.client import RedisClient

RECORD_FILE = "crawl.json"
FILE_WAIT_S = 2.0  # a directory that several machines mount may show a file of another one late
_SETTING = {"partitions": "BIGCRAWL_PARTITIONS", "private_suffixes": "BIGCRAWL_PRIVATE_SUFFIXES"}


@dataclass(frozen=True, slots=True)
class CrawlRecord:
    """The opened record: the crawl's id and the public-suffix list that every node uses."""

    crawl_id: str
    suffixes: PublicSuffixes


async def open_record(client: RedisClient, config: CrawlConfig) -> CrawlRecord:
    """Read the crawl's record, or write it for a new crawl, and compare it with this node.

    Raises:
        ConfigError: another partition count, format or state directory, or a Redis that lost the crawl.
        TransientStoreError: Redis is away.
    """
    key = CrawlKeys(config.name).crawl
    wanted = _fixed_fields(config)
    path = config.crawl_dir / RECORD_FILE
    local = _read_file(path)
    stored = await _read_redis(client, key)
    if "id" not in stored:  # written last: without it, another node is still writing the others
        if local is not None:
            raise ConfigError(
                f"{config.crawl_dir} holds crawl {config.name!r}, but the Redis does not know it: point "
                f"BIGCRAWL_REDIS_URL at the Redis of that crawl, or start anew by removing the directory (FRESH=1)"
            )
        stored = await _create(client, key, wanted, config)
    _compare(wanted, {name: stored[name].decode() for name in wanted if name in stored}, config)
    crawl_id = stored["id"].decode()
    if local is None and await _is_committed(client, config):
        local = await _file_of_another_node(path, config)
    if local is None:
        _write_file(path, {"id": crawl_id, **wanted})
    elif local.get("id") != crawl_id:
        raise ConfigError(
            f"{config.crawl_dir} belongs to another crawl than {config.name!r} in this Redis: give this one "
            f"its own BIGCRAWL_STATE_DIR or BIGCRAWL_CRAWL"
        )
    text = isal_zlib.decompress(stored["suffixes"])
    return CrawlRecord(crawl_id, PublicSuffixes.from_text(text, private=config.private_suffixes))


def _fixed_fields(config: CrawlConfig) -> dict[str, str]:
    return {
        "partitions": str(config.partitions),
        "private_suffixes": str(config.private_suffixes),
        "canonical_version": str(CANONICAL_VERSION),
        "hash_seed": str(HASH_SEED),
        "batch_version": str(BATCH_VERSION),
    }


async def _create(client: RedisClient, key: str, wanted: dict[str, str], config: CrawlConfig) -> dict[str, bytes]:
    """Write the record; two nodes that start at once agree on the id of the first."""
    suffixes = isal_zlib.compress(PublicSuffixes.bundled(private=config.private_suffixes).text, 3)
    rows: list[tuple[str | bytes, ...]] = [("HSETNX", key, "suffixes", suffixes)]
    rows += [("HSETNX", key, name, value) for name, value in wanted.items()]
    rows.append(("HSETNX", key, "id", uuid.uuid4().hex))
    await client.commands(rows)
    return await _read_redis(client, key)


async def _read_redis(client: RedisClient, key: str) -> dict[str, bytes]:
    reply = await client.command("HGETALL", key)
    return {name.decode(): value for name, value in zip(reply[::2], reply[1::2], strict=True)}


async def _is_committed(client: RedisClient, config: CrawlConfig) -> bool:
    states = [partition_keys(config.name, partition).state for partition in range(config.partitions)]
    return any(await client.commands([("HGET", state, "committed") for state in states]))


async def _file_of_another_node(path: Path, config: CrawlConfig) -> dict[str, str]:
    """The file that was written before anything was committed: a crawl is never opened on an empty directory."""
    wait_until = time.monotonic() + FILE_WAIT_S
    while (found := _read_file(path)) is None:
        if time.monotonic() >= wait_until:
            raise ConfigError(
                f"the Redis holds crawl {config.name!r}, but its files are not in {config.crawl_dir}: point "
                f"BIGCRAWL_STATE_DIR at them, or choose another BIGCRAWL_CRAWL"
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
        raise ConfigError(f"cannot read {path}: {error}") from error
    try:
        record = json.loads(text)
    except ValueError:
        raise CorruptionError(path, 0, "a JSON crawl record", repr(text[:40])) from None
    if not isinstance(record, dict):
        raise CorruptionError(path, 0, "a JSON crawl record", repr(text[:40]))
    return record


def _write_file(path: Path, record: dict[str, str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        with temporary.open("w") as file:
            json.dump(record, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise ConfigError(f"cannot write the state directory: {error}; check BIGCRAWL_STATE_DIR") from error
