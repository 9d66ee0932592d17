"""RedisClient against a real server of its own, and a fake one where a real one cannot be made to fail."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError, ContractError, TransientStoreError
from bigcrawl.redisdb.client import REPLY_TIMEOUT_S, RedisClient
from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.redisdb.servers import CONNECTIONS_MAX
from tests.support.redis_servers.client_runs import T0, look, opened, run, run_fake
from tests.support.redis_servers.fake_redis import FakeRedis
from tests.support.redis_servers.redis_server import PrivateRedis

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def own_server() -> Iterator[PrivateRedis]:
    """A server to lock and to keep waiting."""
    with PrivateRedis() as server:
        yield server


@pytest.fixture
def keys(crawl_name: str) -> PartitionKeys:
    return PartitionKeys(crawl_name, 0)


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
    """What is no Redis URL is refused before anything is tried, in a line with the setting and the value."""
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


@pytest.mark.parametrize(
    "url",
    [
        "user:secret@127.0.0.1:6379",
        "secret@127.0.0.1",
        "secret//secret@127.0.0.1",
        "redis://:a/secret#secret@127.0.0.1:6379",
        "unix://user:secret@/tmp/redis.sock?password=secret&nothing=1",
    ],
)
def test_password_is_not_shown_of_what_is_no_url(url: str) -> None:
    """Nor does the library's message quote a piece of it."""
    with pytest.raises(ConfigError) as error:
        RedisClient(url)
    assert "secret" not in str(error.value)
    assert error.value.__suppress_context__, "a traceback would show it"


# --- a server that is away, or not ours to use


def test_absent_server_is_transient(tmp_path: Path) -> None:
    """Nobody listening is an error that may pass; it says so in one line, each time."""

    async def work(client: RedisClient) -> None:
        for attempt in (client.ping, lambda: client.run([look(PartitionKeys("x", 0))])):
            with pytest.raises(TransientStoreError) as error:
                await attempt()
            assert "does not answer" in one_line(error)
            assert "check that it runs, and BIGCRAWL_REDIS_URL" in one_line(error)

    run(f"unix://{tmp_path}/nobody.sock", work)


def test_server_whose_disk_is_full_is_transient_and_its_directory_is_named(redis_url: str) -> None:
    """The server's words name neither where there is no room nor what to do."""
    full = "return redis.error_reply('MISCONF Errors writing to the AOF file: No space left on device')"

    async def work(client: RedisClient) -> None:
        with pytest.raises(RedisRefusedError) as error:
            await client.command("EVAL", full, 0)
        assert "No space left on device; make room on the disk of its directory, which" in one_line(error)

    run(redis_url, work)


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
    """A refused login is for the operator to mend; the message names the setting; no second try passes."""

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


@pytest.mark.parametrize("scheme", ["unix", "redis"])
@pytest.mark.parametrize(
    ("command", "reply", "wanted"),
    [
        (b"AUTH", "-WRONGPASS invalid username-password pair or user is disabled.", ConfigError),
        (b"SELECT", "-ERR DB index is out of range", ConfigError),
        (b"SCRIPT", "-NOPERM this user has no permissions to run the 'script|load' command", ConfigError),
        (b"SELECT", "-LOADING Redis is loading the dataset in memory", TransientStoreError),
        (b"SCRIPT", "-BUSY Redis is busy running a script.", TransientStoreError),
    ],
    ids=lambda value: value.decode() if isinstance(value, bytes) else "",
)
def test_refused_handshake(tmp_path: Path, scheme: str, command: bytes, reply: str, wanted: type[Exception]) -> None:
    """Refusals while connecting are told apart as later ones are, over TCP as over a unix socket."""
    fake = FakeRedis(handshake={command: reply})

    async def whole() -> None:
        async with fake.listening(tmp_path / "fake.sock" if scheme == "unix" else None) as address:
            login = ":right@" if command == b"AUTH" else ""
            async with opened(f"{scheme}://{login}{address}?db=3") as client:
                for _ in range(2):
                    with pytest.raises(wanted) as error:
                        await client.ping()
                    one_line(error)

    asyncio.run(whole())
    assert not fake.received


@pytest.mark.parametrize(
    ("info", "shown"),
    [
        ("redis_version:6.2.14\r\nrun_id:x", "6.2.14"),
        ("redis_version:255.0\r\nvalkey_version:6.9.9\r\nrun_id:x", "6.9.9"),
        ("run_id:x", "0.0"),
    ],
)
def test_old_server_is_refused_every_time(tmp_path: Path, info: str, shown: str) -> None:
    """Below 7.0 is a config error that names both versions; no open connection gets round it later."""
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
        client._reply_timeout_s = REPLY_TIMEOUT_S  # a busy machine takes its time to connect
        assert await client.command("ECHO", "mine") == b"mine"

    run(own_server.url, work, reply_timeout_s=0.05)


def test_cancelled_call_ends_and_leaves_no_reply_behind(own_server: PrivateRedis, crawl_name: str) -> None:
    """Cancelled at any moment a call ends at once, and the next one does not get its answer."""

    async def work(client: RedisClient) -> None:
        await client.ping()
        for ticks in range(12):  # from before the command is sent to long after
            waiting = asyncio.create_task(client.command("BLPOP", crawl_name, 0))
            for _ in range(ticks):
                await asyncio.sleep(0)
            waiting.cancel()
            async with asyncio.timeout(60):
                await asyncio.gather(waiting, return_exceptions=True)
            assert waiting.cancelled()
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
