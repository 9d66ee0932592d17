"""RedisClient's script calls: order, errors among results, missing scripts, servers that restarted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import ContractError, OwnershipLostError, TransientStoreError
from bigcrawl.redisdb import script_texts, scripts
from bigcrawl.redisdb.connections import CALLS_MAX
from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.redisdb.reply_errors import RedisRestartedError
from bigcrawl.redisdb.scripts import GrantedClaim, Identity
from tests.support.redis_servers.client_runs import T0, append, look, run, run_fake
from tests.support.redis_servers.fake_redis import INFO, FakeRedis
from tests.support.redis_servers.redis_server import PrivateRedis

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl.redisdb.client import RedisClient


@pytest.fixture(scope="module")
def own_server() -> Iterator[PrivateRedis]:
    """A server to kill, restart and empty of scripts."""
    with PrivateRedis() as server:
        yield server


@pytest.fixture
def keys(crawl_name: str) -> PartitionKeys:
    return PartitionKeys(crawl_name, 0)


def take(keys: PartitionKeys) -> scripts.Call[Any]:
    return scripts.exchange_urls(keys, Identity("stranger", 1), 1, 1, 0, 1_000, (), T0)


def claim(keys: PartitionKeys, node: str = "a") -> scripts.Call[Any]:
    return scripts.claim_partition(
        keys,
        node=node,
        token="t",  # noqa: S106
        lease_ms=1_000,
        epoch_min=0,
        dead_token="",
        deadline_ms=1_000,
        abort_ms=0,
        forgotten_ms=0,
        delay_ms=1_000,
        generation=1,
        now_ms=T0,
    )


# --- script calls


def test_results_come_in_the_order_of_calls(own_server: PrivateRedis, keys: PartitionKeys) -> None:
    """More calls than one pipeline holds are answered in order, in as few round trips as can be."""
    count = 2 * CALLS_MAX + 5

    async def work(client: RedisClient) -> None:
        before = client.round_trips
        assert await client.run([append(keys, number) for number in range(1, count + 1)]) == [True] * count
        assert client.round_trips - before == 3
        assert await client.run([]) == []
        assert await client.commands([("ECHO", number) for number in range(3)]) == [b"0", b"1", b"2"]

    run(own_server.url, work)
    entries: Any = own_server.client.xrange(keys.inbox)
    assert [int(fields[b"b"]) for _, fields in entries] == list(range(1, count + 1))


def test_an_error_stands_among_the_other_results(own_server: PrivateRedis, keys: PartitionKeys) -> None:
    """`run_each` gives each call its own outcome; `run` raises the first error when all were carried out."""
    broken = PartitionKeys(keys.owner, 1)
    own_server.client.set(broken.owner, "a string where a hash belongs")

    async def work(client: RedisClient) -> None:
        calls = [claim(keys), take(keys), take(broken), append(keys, 1)]
        won, lost, refused, appended = await client.run_each(calls)
        assert isinstance(won, GrantedClaim)
        assert isinstance(lost, OwnershipLostError)
        assert isinstance(refused, ContractError)
        assert appended is True
        with pytest.raises(OwnershipLostError):
            await client.run([take(keys), append(keys, 2)])
        assert await client.run([append(keys, 2)]) == [False], "it was carried out beside the error"

    run(own_server.url, work)


def test_commands_raise_the_first_error(own_server: PrivateRedis, keys: PartitionKeys) -> None:
    """A refused command in a pipeline is an error for the caller."""

    async def work(client: RedisClient) -> None:
        with pytest.raises(ContractError):
            await client.commands([("SET", keys.owner, "x"), ("HGET", keys.owner, "field"), ("PING",)])

    run(own_server.url, work)


def test_scripts_are_there_before_the_first_call(own_server: PrivateRedis) -> None:
    """A new connection to a server finds, or loads, every script before anything is called."""
    own_server.client.script_flush()

    async def work(client: RedisClient) -> None:
        await client.ping()

    run(own_server.url, work)
    digests = [script_texts.script_digest(name) for name in script_texts.script_names()]
    assert all(own_server.client.script_exists(*digests))


def test_flushed_scripts_are_loaded_again(own_server: PrivateRedis, keys: PartitionKeys) -> None:
    """Calls that found no script are repeated after loading it, once each, their results in place."""

    async def work(client: RedisClient) -> None:
        await client.ping()
        own_server.client.script_flush()
        results = await client.run([claim(keys), append(keys, 1), look(keys), append(keys, 2)])
        assert isinstance(results[0], GrantedClaim)
        assert results[1::2] == [True, True]
        assert results[2].count("appended_urls") == 1

    run(own_server.url, work)
    assert own_server.client.xlen(keys.inbox) == 2


# --- a server that restarted


def test_restart_is_noticed_until_it_is_accepted(own_server: PrivateRedis, keys: PartitionKeys) -> None:
    """After a restart every call fails, on every connection, until the caller has said that it knows."""

    async def work(client: RedisClient) -> None:
        await asyncio.gather(*(client.run([append(keys, number)]) for number in range(1, 5)))
        await asyncio.to_thread(own_server.restart)
        for _ in range(3):
            attempts = [client.ping(), client.run([look(keys)]), client.commands([("PING",), ("PING",)])]
            for error in await asyncio.gather(*attempts, return_exceptions=True):
                assert isinstance(error, RedisRestartedError)
        await client.accept_restart()
        await client.ping()
        [view] = await client.run([look(keys)])
        assert view.count("appended_urls") >= 1

    run(own_server.url, work)


def test_killed_server_is_away_and_then_restarted(own_server: PrivateRedis) -> None:
    """While nobody listens the error is only transient; the restart is told when the server is back."""

    async def work(client: RedisClient) -> None:
        await client.ping()
        await asyncio.to_thread(own_server.kill)
        for _ in range(2):
            with pytest.raises(TransientStoreError) as error:
                await client.ping()
            assert not isinstance(error.value, RedisRestartedError)
        with pytest.raises(TransientStoreError):
            await client.accept_restart()
        await asyncio.to_thread(own_server.start)
        await client.accept_restart()
        await client.ping()

    run(own_server.url, work)


def test_new_connection_to_the_same_server_is_no_restart(tmp_path: Path) -> None:
    """A connection that was cut is replaced without a word."""
    cut = iter([None])
    fake = FakeRedis(lambda words: next(cut, "OK"))

    async def work(client: RedisClient) -> None:
        with pytest.raises(TransientStoreError):
            await client.command("SET", "a", "b")
        await client.command("SET", "a", "b")
        fake.info = INFO.replace("run_id:fake", "run_id:other")
        await client.command("SET", "a", "b")

    run_fake(fake, tmp_path, work)
    assert fake.connections == 2
