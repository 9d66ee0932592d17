"""When a sample of the crawl is taken, by whom, and that their number stays bounded."""

from __future__ import annotations

import asyncio
import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bigcrawl.clock import ManualClock
from bigcrawl.exceptions import TransientStoreError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.redisdb.scripts import NOTHING_MADE
from bigcrawl.scheduler.crawl.history import EVERY_MS, TIME_S, packed, read_history
from bigcrawl.scheduler.crawl.samples import FRESH, OLD_MAX, ROWS_MAX, Samples, samples_to_drop
from bigcrawl.scheduler.crawl.survey import Survey, survey
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.sizes import examples
from tests.unit.scheduler.crawl.test_history import sample_of
from tests.unit.scheduler.gates.test_speed import awaited
from tests.unit.scheduler.world import connected, queued, world, world_of_one_clock

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from tests.unit.scheduler.world import World


# --- which are kept


def kept_of(numbers: range) -> list[int]:
    """What is left of samples that are taken one after another, thinned as Redis' are."""
    kept: set[int] = set()
    for number in numbers:
        kept.add(number)
        if len(kept) > ROWS_MAX:
            kept.difference_update(samples_to_drop(kept))
    return sorted(kept)


def numbers_of_runs(runs: list[tuple[int, int, int]]) -> set[int]:
    """The samples of a crawl that was stopped now and then: how long each time, how many samples, and how far apart."""
    numbers: set[int] = set()
    at = 0
    for stopped, length, step in runs:
        at += stopped
        numbers.update(range(at, at + length * step, step))
        at += length * step
    return numbers


@settings(max_examples=examples(30))
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 2_000), st.sampled_from([1, 2, 3, 8])), max_size=4))
def test_whatever_there_is_at_most_the_bound_is_left(runs: list[tuple[int, int, int]]) -> None:
    """The first stays, and all of the last hour; what is left is not thinned out again."""
    numbers = numbers_of_runs(runs)
    gone = {*samples_to_drop(numbers)}
    left = numbers - gone
    assert gone <= numbers
    assert len(left) <= ROWS_MAX
    if numbers:
        assert min(numbers) in left
        assert {number for number in numbers if number > max(numbers) - FRESH} <= left
    assert not samples_to_drop(left)


@pytest.mark.parametrize("length", [1, FRESH + 1, ROWS_MAX, ROWS_MAX + 1, 5_000, 9_001])
@pytest.mark.parametrize("first", [0, 177_000_001])
def test_crawl_that_goes_on_keeps_its_whole_time_at_half_the_bound_or_more(first: int, length: int) -> None:
    """No two old samples are farther apart than the step that the length of the crawl asks for."""
    kept = kept_of(range(first, first + length))
    assert len(kept) <= ROWS_MAX
    assert (kept[0], kept[-1]) == (first, first + length - 1)
    assert len(kept) == length or len(kept) > OLD_MAX // 2 + FRESH
    gaps = [later - earlier for earlier, later in itertools.pairwise(kept)]
    assert max(gaps, default=1) <= max(1, 2 * length / OLD_MAX)


def test_samples_thinned_in_any_order_are_the_same() -> None:
    """A deletion that arrives late deletes nothing that a later one would have kept."""
    early, late = samples_to_drop(range(5_000)), samples_to_drop(range(9_000))
    assert {*early} < {*late}


def test_ten_days_are_kept_in_as_many_rows() -> None:
    """Thinning goes by the number of the samples, not by what was kept before. Old ones are twenty minutes apart."""
    days = range(864_000_000 // EVERY_MS)
    kept = sorted({*days} - {*samples_to_drop(days)})
    assert OLD_MAX // 2 < len(kept) <= ROWS_MAX
    assert max(later - earlier for earlier, later in itertools.pairwise(kept)) * EVERY_MS <= 20 * 60_000


# --- when, and by whom


async def numbers_of(w: World) -> list[int]:
    return sorted(int(name) for name in await w.client.command("HKEYS", CrawlKeys(w.config.crawl.name).history))


@awaited
async def test_crawl_is_sampled_every_ten_seconds_from_its_begin_to_its_end(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """The first sample is of an empty crawl, the last of all that was done."""
    clock = ManualClock()
    async with world_of_one_clock(clock, tmp_path, crawl_name, redis_url) as w:
        node = await w.joined()
        begun = node.parts.crawl.client.now_ms() // EVERY_MS
        assert await numbers_of(w) == [begun]
        for url in queued("http://a.example/", "http://b.example/"):
            node.offer(url)
        started = await w.take(node)
        for held in started:
            w.end(node, held)
        for _ in range(40):
            await w.turn(node, 1)
        await node.departure.close()
        ended = node.parts.crawl.client.now_ms() // EVERY_MS
        assert await numbers_of(w) == list(range(begun, ended + 1))
        history = await read_history(w.client, crawl_name)
        assert (history["pages"][0], history["pages"][-1]) == (0, 2)
        assert history["seen"][-1] == 2
        assert history["nodes"][-1] == 0
        assert history["partitions_owned"][-1] == 0
        assert history["nodes"][1] == 1


@awaited
async def test_one_of_two_nodes_takes_the_samples_and_the_other_goes_on(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """While both live only the first writes; when it has left the second does."""
    clock = ManualClock()
    async with world_of_one_clock(clock, tmp_path, crawl_name, redis_url) as w:
        first, second = await w.joined(), await w.joined()
        for node in (first, second):
            await node.beat.turn()
        writers: dict[str, list[Survey]] = {"first": [], "second": []}
        count_samples(first, writers["first"])
        count_samples(second, writers["second"])
        clock.advance(EVERY_MS)
        await second.parts.progress.samples.take_if_due(second.progress.survey_lately)
        await first.parts.progress.samples.take_if_due(first.progress.survey_lately)
        await first.parts.progress.samples.take_if_due(first.progress.survey_lately)
        assert [len(surveys) for surveys in writers.values()] == [1, 0]
        await first.membership.leave(first.parts.crawl.client)
        await second.beat.turn()
        clock.advance(EVERY_MS)
        await second.parts.progress.samples.take_if_due(second.progress.survey_lately)
        assert [len(surveys) for surveys in writers.values()] == [1, 1]


def count_samples(node: Node, surveys: list[Survey]) -> None:
    samples: Any = node.parts.progress.samples
    keep = samples.keep

    async def counted(seen: Survey, reports: Any) -> None:
        surveys.append(seen)
        await keep(seen, reports)

    samples.keep = counted


@awaited
async def test_sample_of_the_begin_is_not_replaced_by_one_of_the_same_seconds(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """It is of the crawl as the node found it."""
    async with world_of_one_clock(ManualClock(), tmp_path, crawl_name, redis_url) as w:
        node = await w.joined()
        surveys: list[Survey] = []
        count_samples(node, surveys)
        await node.parts.progress.samples.take_if_due(node.progress.survey_lately)
        assert not surveys
        w.clock.advance(EVERY_MS)
        await node.parts.progress.samples.take_if_due(node.progress.survey_lately)
        assert len(surveys) == 1


# --- faults


class Client:
    """Knows the time, and fails as it is told."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.asked = 0

    def now_ms(self) -> int:
        return 7 * EVERY_MS

    async def commands(self, rows: object) -> list[Any]:
        self.asked += 1
        raise self.error

    async def is_cluster(self) -> bool:
        return False

    async def run(self, calls: object) -> list[Any]:
        self.asked += 1
        raise self.error


def test_sample_that_failed_is_left_out() -> None:
    """It is not tried again: the next one comes in ten seconds."""
    client: Any = Client(TransientStoreError("away"))
    membership: Any = type("Alone", (), {"reports": {}, "node": "n", "made_by_all": NOTHING_MADE})
    samples = Samples(client, "crawl", membership)

    async def scenario() -> None:
        with pytest.raises(TransientStoreError):
            await samples.take_if_due(partial(survey, client, "crawl", 1))
        asked = client.asked
        await samples.take_if_due(partial(survey, client, "crawl", 1))
        assert client.asked == asked > 0
        client.error = RedisRefusedError("full")
        await samples.keep(Survey(1), {})

    asyncio.run(scenario())


@awaited
async def test_full_redis_refuses_samples_and_nothing_else_happens(tmp_path: Path, crawl_name: str) -> None:
    """A node's loop goes on, and samples come again when there is room."""
    with PrivateRedis(aof=False) as server:
        async with world(tmp_path, crawl_name, server.url) as w:
            node = await w.joined()
            key = CrawlKeys(crawl_name).history
            await w.client.command("DEL", key)
            server.client.config_set("maxmemory", "1")
            await node.parts.progress.samples.keep(Survey(4), {})
            assert await w.client.command("HLEN", key) == 0
            node.offer(queued("http://a.example/")[0])  # it does not look for its end
            assert await node.watch.turn() > 0
            server.client.config_set("maxmemory", "0")
            await node.parts.progress.samples.keep(Survey(4), {})
            assert await w.client.command("HLEN", key) == 1


@awaited
async def test_rows_in_redis_are_thinned_out(crawl_name: str, redis_url: str) -> None:
    """Whatever came late, or twice."""
    membership: Any = type("Alone", (), {"reports": {}, "node": "n", "made_by_all": NOTHING_MADE})
    async with connected(redis_url) as client:
        await client.ping()
        key, now = CrawlKeys(crawl_name).history, client.now_ms() // EVERY_MS
        before = range(now - 4_000, now)
        rows = [("HSET", key, str(number), packed(sample_of({}), number * EVERY_MS)) for number in before]
        await client.commands(rows)
        await Samples(client, crawl_name, membership).keep(Survey(1), {})
        left = sorted(int(name) for name in await client.command("HKEYS", key))
        assert len(left) <= ROWS_MAX
        assert left[0] == before[0]
        assert left[-1] >= now
        times = (await read_history(client, crawl_name))[TIME_S]
        assert times == sorted(filter(None, times))
        assert len(times) == len(left)
