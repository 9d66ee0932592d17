"""Calls of one script travel as one command: what each gets, and what becomes of the others when one fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgpack
import pytest

from bigcrawl.exceptions import BigcrawlError, ContractError
from bigcrawl.redisdb import connections, script_texts, scripts
from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.redisdb.script_texts import CALLS_MAX
from bigcrawl.redisdb.scripts import GrantedClaim, PartitionView
from tests.support.redis_servers.client_runs import T0, append, look, run, run_fake
from tests.support.redis_servers.fake_redis import FakeRedis
from tests.support.redis_servers.one_clock import ask_no_more
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.redisdb.test_client_calls import claim

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl.redisdb.client import RedisClient


@pytest.fixture(scope="module")
def own_server() -> Iterator[PrivateRedis]:
    """A server to empty of scripts, and to fill."""
    with PrivateRedis(aof=False) as server:
        yield server


@pytest.fixture
def partitions(crawl_name: str) -> list[PartitionKeys]:
    return [PartitionKeys(crawl_name, number) for number in range(200)]


def entries(server: PrivateRedis, keys: PartitionKeys) -> list[bytes]:
    """What `append` left in an inbox."""
    found: Any = server.client.xrange(keys.inbox)
    return [fields[b"b"] for _, fields in found]


def commands(server: PrivateRedis) -> int:
    """EVALSHA commands so far."""
    found: Any = server.client.info("commandstats")
    return int(found.get("cmdstat_evalsha", {"calls": 0})["calls"])


def test_neighbours_of_one_script_are_one_command(own_server: PrivateRedis, partitions: list[PartitionKeys]) -> None:
    """Up to 64 of them; another script between two begins a new one. Each call has keys and arguments of its own."""
    a, b = partitions[:2]

    async def work(client: RedisClient) -> None:
        await client.ping()
        before = commands(own_server)
        calls = [append(keys, 1) for keys in partitions[: CALLS_MAX + 1]]
        assert await client.run(calls) == [True] * (CALLS_MAX + 1)
        assert commands(own_server) - before == 2
        before = commands(own_server)
        mixed: list[scripts.Call[Any]] = [append(a, 2), append(b, 2), look(a), append(a, 3), append(a, 2), look(b)]
        first, second, seen_a, third, again, seen_b = await client.run(mixed)
        assert (first, second, third, again) == (True, True, True, False)
        assert isinstance(seen_a, PartitionView)
        assert (seen_a.count("appended_urls"), seen_b.count("appended_urls")) == (2, 2)
        assert commands(own_server) - before == 4

    run(own_server.url, work)
    assert entries(own_server, a) == [b"1", b"2", b"3"]
    assert [entries(own_server, keys) for keys in partitions[1 : CALLS_MAX + 1]] == [
        [b"1", b"2"],
        *[[b"1"]] * (CALLS_MAX - 1),
    ]


@pytest.mark.parametrize("at", [0, 1, 31, 62, 63])
def test_call_that_fails_stops_no_other(own_server: PrivateRedis, partitions: list[PartitionKeys], at: int) -> None:
    """Wherever it stands in the command: it gets its own error, and those before and after are carried out."""
    keys = partitions[:64]
    own_server.client.set(keys[at].inbox, "a string where a stream belongs")

    async def work(client: RedisClient) -> None:
        results = await client.run_each([append(one, 1) for one in keys])
        failed = results.pop(at)
        assert isinstance(failed, ContractError)
        assert "WRONGTYPE" in str(failed)
        assert results == [True] * 63

    run(own_server.url, work)
    assert [entries(own_server, one) for i, one in enumerate(keys) if i != at] == [[b"1"]] * 63


def test_calls_of_one_command_see_each_other_in_order(
    own_server: PrivateRedis, partitions: list[PartitionKeys]
) -> None:
    """The second claim of a partition finds the first one's."""

    async def work(client: RedisClient) -> None:
        first, second, other = await client.run(
            [claim(partitions[0]), claim(partitions[0], "b"), claim(partitions[1], "b")]
        )
        assert isinstance(first, GrantedClaim)
        assert not isinstance(second, GrantedClaim)
        assert isinstance(other, GrantedClaim)

    run(own_server.url, work)


def test_scripts_that_were_flushed_are_loaded_and_called_once(
    own_server: PrivateRedis, partitions: list[PartitionKeys]
) -> None:
    """Whole groups are repeated, in their places; nothing is carried out twice."""

    async def work(client: RedisClient) -> None:
        await client.ping()
        own_server.client.script_flush()
        calls: list[scripts.Call[Any]] = [append(keys, 1) for keys in partitions]
        calls.insert(100, look(partitions[0]))
        results = await client.run(calls)
        assert isinstance(results.pop(100), PartitionView)
        assert results == [True] * 200

    run(own_server.url, work)
    assert [entries(own_server, keys) for keys in partitions] == [[b"1"]] * 200


def test_full_server_is_each_calls_error(own_server: PrivateRedis, partitions: list[PartitionKeys]) -> None:
    """A server out of memory refuses whole commands: every call of them may be tried again, and nothing was done."""

    async def work(client: RedisClient) -> None:
        await client.ping()
        own_server.client.config_set("maxmemory", "1")
        try:
            results = await client.run_each([append(keys, 1) for keys in partitions[:3]])
        finally:
            own_server.client.config_set("maxmemory", "0")
        assert [type(result) for result in results] == [RedisRefusedError] * 3
        assert all("OOM" in str(result) or "memory" in str(result) for result in results)
        assert await client.run([append(keys, 1) for keys in partitions[:3]]) == [True] * 3

    run(own_server.url, work)
    assert [entries(own_server, keys) for keys in partitions[:3]] == [[b"1"]] * 3


def test_error_of_one_command_is_not_the_next_ones(tmp_path: Path, partitions: list[PartitionKeys]) -> None:
    """Two commands in one round trip: the calls of the refused one fail, those of the other have their replies."""
    name = script_texts.script_digest("append_batch").encode()

    def answer(words: list[bytes]) -> str | int:
        return "-BUSY a script runs" if words[1] == name else "-MISCONF disk"

    async def work(client: RedisClient) -> None:
        results = await client.run_each([append(partitions[0], 1), append(partitions[1], 1), look(partitions[0])])
        assert [type(result) for result in results] == [RedisRefusedError] * 3
        said = [str(result) for result in results]
        assert "BUSY" in said[0]
        assert said[0] == said[1] != said[2]
        with pytest.raises(BigcrawlError):
            await client.run([look(partitions[0])])

    run_fake(FakeRedis(answer), tmp_path, work)


def test_form_for_many_hands_over_numbers_strings_and_nothing() -> None:
    """Arguments are strings whatever they were, as Redis has it; a call without keys or arguments has its place."""
    calls: list[scripts.Call[Any]] = [
        scripts.Call("look_partition", ("k1", "k2"), (T0, b"\xff\x00", 0.5), int),
        scripts.Call("look_partition", (), (), int),
        scripts.Call("look_partition", ("k3",), ("b", 2**63), int),
    ]
    [(_, words)] = script_texts.commands(calls)
    name, digest, declared, packed = words
    assert (name, digest, declared) == ("EVALSHA", script_texts.script_digest("look_partition"), 0)
    assert isinstance(packed, bytes)
    assert msgpack.unpackb(packed, raw=True) == [
        [[b"k1", b"k2"], [b"%d" % T0, b"\xff\x00", b"0.5"]],
        [[], []],
        [[b"k3"], [b"b", b"9223372036854775808"]],
    ]


def test_call_that_goes_alone_declares_its_keys() -> None:
    """A cluster asks the server of a command's keys, so there has to be one."""
    call: scripts.Call[Any] = scripts.Call("look_partition", ("k1", "k2"), (0, "a"), int)
    [command] = script_texts.commands([call], T0)
    assert command.words[2:5] == (2, "k1", "k2")


def test_numbers_reach_a_script_as_they_were(own_server: PrivateRedis, partitions: list[PartitionKeys]) -> None:
    """Beyond what a Lua number can hold, and bytes that are no text."""
    batch = bytes(range(256)) * 300

    async def work(client: RedisClient) -> None:
        await client.run([scripts.append_batch(keys, "node", 2**53, 1, batch, 2**53 + 1) for keys in partitions[:2]])

    run(own_server.url, work)
    for keys in partitions[:2]:
        stored: Any = own_server.client.xrange(keys.inbox)
        assert stored[0][1][b"b"] == batch
        assert own_server.client.get(keys.sender + "node") == b"%d 1" % 2**53


def test_large_calls_share_neither_a_command_nor_a_round_trip(
    own_server: PrivateRedis, partitions: list[PartitionKeys], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes bound both, beside the number of calls; a call that is larger than that goes alone. All in order."""
    monkeypatch.setattr(script_texts, "BYTES_MAX", 10_000)
    monkeypatch.setattr(connections, "BYTES_MAX", 30_000)
    sizes = [3_000] * 9 + [100_000] + [100] * 3
    batches = [bytes([number]) * size for number, size in enumerate(sizes, 1)]
    calls = [scripts.append_batch(partitions[0], "node", 1, n, batch, 1) for n, batch in enumerate(batches, 1)]
    grouped = [len(command.calls) for command in script_texts.commands(calls)]
    assert grouped == [3, 3, 3, 1, 3]

    async def work(client: RedisClient) -> None:
        await client.ping()
        ask_no_more(client)
        before = client.round_trips
        assert all(await client.run(calls))
        assert client.round_trips - before == 3

    run(own_server.url, work)
    assert entries(own_server, partitions[0]) == batches


def test_bounds_of_a_command_keep_it_far_from_what_redis_refuses() -> None:
    """Sixty-four calls of ten megabytes would be an argument beyond the 512 MB that it takes."""
    batch = bytes(10 << 20)
    calls: list[scripts.Call[Any]] = [scripts.Call("look_partition", ("k",), ("a", batch), int)] * 64
    assert max(len(bytes(command.words[-1])) for command in script_texts.commands(calls)) < 16 << 20  # type: ignore[arg-type]
