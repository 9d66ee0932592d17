"""RedisClient against a real server of its own, and against a fake one where a real one cannot be made to fail."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import ConfigError, ContractError, OwnershipLostError, TransientStoreError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.client import CALLS_PER_PIPELINE, CONNECTIONS_MAX, RedisClient, RedisRestartedError
from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.redisdb.scripts import Claim, Identity, PartitionView
from tests.support.fake_redis import INFO, FakeRedis
from tests.support.redis_server import PrivateRedis

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

T0 = 1_700_000_000_000


@pytest.fixture(scope="module")
def own_server() -> Iterator[PrivateRedis]:
    """A server to restart, cut and misconfigure."""
    with PrivateRedis() as server:
        yield server


@pytest.fixture
def keys(crawl_name: str) -> PartitionKeys:
    return PartitionKeys(crawl_name, 0)


def run(url: str, work: Callable[[RedisClient], Awaitable[None]]) -> None:
    """Run `work` with a client of `url` that is closed at the end."""

    async def whole() -> None:
        async with opened(url) as client:
            await work(client)

    asyncio.run(whole())


@contextlib.asynccontextmanager
async def opened(url: str) -> AsyncIterator[RedisClient]:
    client = RedisClient(url)
    try:
        yield client
    finally:
        await client.close()


def run_fake(fake: FakeRedis, tmp_path: Path, work: Callable[[RedisClient], Awaitable[None]]) -> None:
    """Run `work` with a client of a fake server."""

    async def whole() -> None:
        async with fake.listening(tmp_path / "fake.sock") as url, opened(url) as client:
            await work(client)

    asyncio.run(whole())


def look(keys: PartitionKeys) -> scripts.Call[PartitionView]:
    return scripts.look_partition(keys, now_ms=T0)


def claim(keys: PartitionKeys, node: str = "a") -> scripts.Call[Any]:
    return scripts.claim_partition(
        keys,
        node=node,
        token="t",
        lease_ms=1_000,
        epoch_min=0,
        dead_token="",
        deadline_ms=1_000,
        delay_ms=1_000,
        now_ms=T0,
    )


def append(keys: PartitionKeys, number: int) -> scripts.Call[bool]:
    return scripts.append_batch(keys, "node", number, b"%d" % number, 1)


def one_line(error: pytest.ExceptionInfo[Exception]) -> str:
    text = str(error.value)
    assert text
    assert "\n" not in text
    return text


# --- addresses


@pytest.mark.parametrize(
    "url",
    [
        "",
        "rubbish",
        "localhost:6379",
        "http://localhost:6379",
        "redis://localhost:port",
        "redis://localhost:99999",
        "redis://localhost/?db=first",
        "redis://localhost/?no_such_option=1",
        "redis://[::1",
    ],
)
def test_rubbish_for_a_url_is_a_config_error(url: str) -> None:
    """What is no Redis URL is refused before anything is tried, in one line that names the setting and the value."""
    with pytest.raises(ConfigError) as error:
        RedisClient(url)
    text = one_line(error)
    assert "BIGCRAWL_REDIS_URL" in text
    assert repr(url) in text


def test_password_is_not_shown() -> None:
    """Neither a message nor a repr gives a password away."""
    assert "secret" not in repr(RedisClient("redis://user:secret@127.0.0.1:1/0"))
    with pytest.raises(ConfigError) as error:
        RedisClient("redis://user:secret@127.0.0.1:port/0")
    assert "secret" not in str(error.value)


# --- a server that is away, or not ours to use


def test_absent_server_is_transient(tmp_path: Path) -> None:
    """Nobody listening is an error that may pass; it says so in one line."""

    async def work(client: RedisClient) -> None:
        for attempt in (client.ping(), client.run([]), client.commands([["PING"]])):
            with contextlib.suppress(IndexError):
                await attempt
        with pytest.raises(TransientStoreError) as error:
            await client.ping()
        assert "does not answer" in one_line(error)

    with pytest.raises(TransientStoreError):
        run(f"unix://{tmp_path}/nobody.sock", work)


@pytest.mark.parametrize(
    ("url", "words"),
    [("unix://{0}?password=wrong", "login"), ("unix://nobody:wrong@{0}", "login"), ("unix://{0}", "login")],
    ids=["wrong-password", "unknown-user", "no-password"],
)
def test_wrong_login_is_a_config_error(url: str, words: str) -> None:
    """A refused login is for the operator to mend, and says where."""
    with PrivateRedis(aof=False, options={"requirepass": "right"}) as server:
        pytest.skip("replaced below") if server is None else None
        address = url.format(server.socket_path)

        async def work(client: RedisClient) -> None:
            for _ in range(2):
                with pytest.raises(ConfigError) as error:
                    await client.ping()
                assert words in one_line(error)
                assert "BIGCRAWL_REDIS_URL" in str(error.value)

        run(address, work)
