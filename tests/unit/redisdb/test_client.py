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


def take(keys: PartitionKeys) -> scripts.Call[Any]:
    return scripts.take_urls(keys, Identity("stranger", 1), 1, 0, 1, 1_000, T0)


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
    """Nobody listening is an error that may pass; it says so in one line, each time."""

    async def work(client: RedisClient) -> None:
        for attempt in (client.ping, lambda: client.run([look(PartitionKeys("x", 0))])):
            with pytest.raises(TransientStoreError) as error:
                await attempt()
            assert "does not answer" in one_line(error)

    run(f"unix://{tmp_path}/nobody.sock", work)


@pytest.fixture
def locked_server(own_server: PrivateRedis) -> Iterator[PrivateRedis]:
    """The server with a password on, and a user who may only read."""
    with own_server.client.client() as connection:
        connection.config_set("requirepass", "right")
        connection.execute_command("ACL SETUSER reader on >right ~* +@read +@connection +info +script|load")
        yield own_server
        connection.execute_command("ACL DELUSER reader")
        connection.config_set("requirepass", "")


@pytest.mark.parametrize(
    "url",
    ["unix://{0}?password=wrong", "unix://nobody:wrong@{0}", "unix://{0}"],
    ids=["wrong-password", "unknown-user", "no-password"],
)
def test_wrong_login_is_a_config_error(locked_server: PrivateRedis, url: str) -> None:
    """A refused login is for the operator to mend; the message names the setting, and no second try passes."""

    async def work(client: RedisClient) -> None:
        for _ in range(2):
            with pytest.raises(ConfigError) as error:
                await client.ping()
            assert "BIGCRAWL_REDIS_URL" in one_line(error)

    run(url.format(locked_server.socket_path), work)


def test_right_login_is_let_in(locked_server: PrivateRedis, keys: PartitionKeys) -> None:
    """Password in the URL, and the scripts run."""

    async def work(client: RedisClient) -> None:
        [view] = await client.run([look(keys)])
        assert view.now_ms == T0

    run(f"unix://:right@{locked_server.socket_path}", work)


def test_user_without_rights_is_a_config_error(locked_server: PrivateRedis, keys: PartitionKeys) -> None:
    """An ACL user who may not run scripts is the operator's to mend, not a bug."""

    async def work(client: RedisClient) -> None:
        await client.ping()
        with pytest.raises(ConfigError) as error:
            await client.run([look(keys)])
        assert "permit" in one_line(error)

    run(f"unix://reader:right@{locked_server.socket_path}", work)


def test_database_that_is_not_there_is_a_config_error(own_server: PrivateRedis) -> None:
    """A database number beyond the server's is a wrong URL."""

    async def work(client: RedisClient) -> None:
        with pytest.raises(ConfigError) as error:
            await client.ping()
        assert "BIGCRAWL_REDIS_URL" in one_line(error)

    run(f"unix://{own_server.socket_path}?db=999", work)


@pytest.mark.parametrize(
    ("info", "shown"),
    [
        ("redis_version:6.2.14\r\nrun_id:x", "6.2.14"),
        ("redis_version:255.0\r\nvalkey_version:6.9.9\r\nrun_id:x", "6.9.9"),
        ("run_id:x", "0.0"),
    ],
)
def test_old_server_is_refused_every_time(tmp_path: Path, info: str, shown: str) -> None:
    """A server below 7.0 is a config error that names both versions; no open connection gets round it later."""
    fake = FakeRedis(info=info)

    async def work(client: RedisClient) -> None:
        for _ in range(3):
            with pytest.raises(ConfigError) as error:
                await client.ping()
            assert shown in one_line(error)
            assert "7.0" in str(error.value)

    run_fake(fake, tmp_path, work)
    assert not fake.received


@pytest.mark.parametrize(
    "info", ["redis_version:7.0.0\r\nrun_id:x", "redis_version:7.2.4\r\nvalkey_version:9.1.0\r\nrun_id:x"]
)
def test_oldest_server_that_will_do(tmp_path: Path, info: str) -> None:
    """Redis 7.0 and any Valkey are accepted."""
    run_fake(FakeRedis(info=info), tmp_path, RedisClient.ping)


# --- what a server may answer


@pytest.mark.parametrize(
    "reply",
    [
        "-MISCONF Errors writing to the AOF file: No space left on device",
        "-OOM command not allowed when used memory > 'maxmemory'.",
        "-LOADING Redis is loading the dataset in memory",
        "-READONLY You can't write against a read only replica.",
        "-MASTERDOWN Link with MASTER is down",
        "-CLUSTERDOWN The cluster is down",
        "-TRYAGAIN Multiple keys request during rehashing of slot",
        "-BUSY Redis is busy running a script.",
        "-NOREPLICAS Not enough good replicas to write.",
        None,
    ],
    ids=lambda reply: reply.split()[0] if reply else "cut",
)
def test_what_may_pass_is_transient(tmp_path: Path, reply: str | None) -> None:
    """A server that cannot write now, or hangs up, may be asked again later."""

    async def work(client: RedisClient) -> None:
        with pytest.raises(TransientStoreError) as error:
            await client.command("SET", "key", "value")
        one_line(error)
        with pytest.raises(TransientStoreError):
            await client.run([look(PartitionKeys("x", 0))])

    run_fake(FakeRedis(lambda words: reply), tmp_path, work)


@pytest.mark.parametrize("reply", ["-ERR wrong number of arguments", "-WRONGTYPE Operation against a key"])
def test_what_will_not_pass_is_our_bug(tmp_path: Path, reply: str) -> None:
    """Any other refusal is a call outside its contract."""

    async def work(client: RedisClient) -> None:
        with pytest.raises(ContractError, match="refused a call"):
            await client.command("SET", "key", "value")

    run_fake(FakeRedis(lambda words: reply), tmp_path, work)


def test_call_is_not_repeated_behind_our_back(tmp_path: Path) -> None:
    """After a lost connection nothing is sent twice: whether to repeat is the caller's decision."""
    fake = FakeRedis(lambda words: None)

    async def work(client: RedisClient) -> None:
        with pytest.raises(TransientStoreError):
            await client.run([look(PartitionKeys("x", 0))])
        with pytest.raises(TransientStoreError):
            await client.command("INCR", "counter")

    run_fake(fake, tmp_path, work)
    assert [words[0] for words in fake.received] == [b"EVALSHA", b"INCR"]


def test_silent_server_is_transient(own_server: PrivateRedis, crawl_name: str) -> None:
    """A reply that does not come in time is an error that may pass, and its connection is not used again."""

    async def work(client: RedisClient) -> None:
        with pytest.raises(TransientStoreError):
            await client.command("BLPOP", crawl_name, 0)
        await asyncio.to_thread(own_server.client.rpush, crawl_name, "late")
        assert await client.command("ECHO", "mine") == b"mine"

    run(f"unix://{own_server.socket_path}?socket_timeout=0.05", work)


def test_cancelled_call_leaves_no_reply_behind(own_server: PrivateRedis, crawl_name: str) -> None:
    """The next call on the pool does not get the answer of one that was given up."""

    async def work(client: RedisClient) -> None:
        await client.ping()
        waiting = asyncio.create_task(client.command("BLPOP", crawl_name, 0))
        while await client.command("CLIENT", "LIST") and not own_server.client.info("clients")["blocked_clients"]:
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.to_thread(own_server.client.rpush, crawl_name, "late")
        echoes = await asyncio.gather(*(client.command("ECHO", number) for number in range(20)))
        assert echoes == [b"%d" % number for number in range(20)]

    run(own_server.url, work)


def test_connections_are_bounded(tmp_path: Path) -> None:
    """However many calls wait, a client opens a few connections."""
    fake = FakeRedis(lambda words: words[1])

    async def work(client: RedisClient) -> None:
        echoes = await asyncio.gather(*(client.command("ECHO", number) for number in range(100)))
        assert echoes == [b"%d" % number for number in range(100)]

    run_fake(fake, tmp_path, work)
    assert fake.connections <= CONNECTIONS_MAX


# --- script calls


def test_results_come_in_the_order_of_calls(own_server: PrivateRedis, keys: PartitionKeys) -> None:
    """More calls than one pipeline holds are answered in order, in as few round trips as their number allows."""
    count = 2 * CALLS_PER_PIPELINE + 5

    async def work(client: RedisClient) -> None:
        before = client.round_trips
        assert await client.run([append(keys, number) for number in range(1, count + 1)]) == [True] * count
        assert client.round_trips - before == 3
        assert await client.run([]) == []
        assert await client.commands([("ECHO", number) for number in range(3)]) == [b"0", b"1", b"2"]

    run(own_server.url, work)
    entries = own_server.client.xrange(keys.inbox)
    assert [int(fields[b"b"]) for _, fields in entries] == list(range(1, count + 1))


def test_an_error_stands_among_the_other_results(own_server: PrivateRedis, keys: PartitionKeys) -> None:
    """`run_each` gives each call its own outcome; `run` raises the first error when all were carried out."""
    broken = PartitionKeys(keys.owner, 1)
    own_server.client.set(broken.owner, "a string where a hash belongs")

    async def work(client: RedisClient) -> None:
        calls = [claim(keys), take(keys), take(broken), append(keys, 1)]
        won, lost, refused, appended = await client.run_each(calls)
        assert isinstance(won, Claim)
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
    digests = [scripts.digest(name) for name in scripts.names()]
    assert all(own_server.client.script_exists(*digests))


def test_flushed_scripts_are_loaded_again(own_server: PrivateRedis, keys: PartitionKeys) -> None:
    """Calls that found no script are repeated after loading it, once each, their results in place."""

    async def work(client: RedisClient) -> None:
        await client.ping()
        own_server.client.script_flush()
        results = await client.run([claim(keys), append(keys, 1), look(keys), append(keys, 2)])
        assert isinstance(results[0], Claim)
        assert results[1::2] == [True, True]
        assert results[2].count("appended") == 1

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
        assert view.count("appended") >= 1

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
