"""A test's coroutine with a `RedisClient` that is closed at the end, on a real or on a fake server."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.scripts import Call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.redisdb.scripts import PartitionView
    from tests.support.redis_servers.fake_redis import FakeRedis

T0 = 1_700_000_000_000


@contextlib.asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[RedisClient]:
    """A client of `url`; `options` are RedisClient's."""
    client = RedisClient(url, **options)
    try:
        yield client
    finally:
        await client.close()


def run(url: str, work: Callable[[RedisClient], Awaitable[None]], **options: Any) -> None:
    """Run `work` with a client of `url`."""

    async def whole() -> None:
        async with opened(url, **options) as client:
            await work(client)

    asyncio.run(whole())


def run_fake(fake: FakeRedis, tmp_path: Path, work: Callable[[RedisClient], Awaitable[None]]) -> None:
    """Run `work` with a client of a fake server."""

    async def whole() -> None:
        async with fake.listening(tmp_path / "fake.sock") as address, opened(f"unix://{address}") as client:
            await work(client)

    asyncio.run(whole())


def look(keys: PartitionKeys) -> Call[PartitionView]:
    """A call that changes nothing."""
    return scripts.look_partition(keys, now_ms=T0)


def append(keys: PartitionKeys, number: int) -> Call[bool]:
    """A call that leaves a trace, once for each number; whether it did."""
    call = scripts.append_batch(keys, "node", 1, number, b"%d" % number, 1)
    return Call(call.name, call.keys, call.args, lambda reply: isinstance(reply, bytes))
