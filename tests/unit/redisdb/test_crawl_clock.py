"""A node's estimate of the crawls' time: its own boot clock, held to what Redis answers."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.crawl_clock import ASK_EVERY_MS, CrawlClock
from bigcrawl.redisdb.keys import CLOCK, PartitionKeys
from bigcrawl.redisdb.scripts import PartitionView
from tests.support.redis_servers.redis_server import PrivateRedis

if TYPE_CHECKING:
    from collections.abc import Iterator

T0 = 1_700_000_000_000
HOUR_MS = 3_600_000


@pytest.fixture
def boot() -> ManualClock:
    return ManualClock()


@pytest.fixture
def clock(boot: ManualClock) -> CrawlClock:
    """It was told at once, at `T0`."""
    clock = CrawlClock(boot)
    clock.record_time(T0, clock.boot_ms())
    return clock


@pytest.fixture(scope="module")
def own_server() -> Iterator[PrivateRedis]:
    with PrivateRedis(aof=False) as server:
        yield server


def test_nothing_is_known_before_redis_has_answered(boot: ManualClock) -> None:
    """0 stands for "ask the server's clock"; nobody asks again what was never answered."""
    clock = CrawlClock(boot)
    assert (clock.now_ms(), clock.is_known, clock.is_due) == (0, False, False)


def test_time_goes_on_by_the_boot_clock(clock: CrawlClock, boot: ManualClock) -> None:
    """Between two answers the node's own clock counts, and each second Redis is asked."""
    boot.advance(ASK_EVERY_MS - 1)
    due = [clock.is_due]
    boot.advance(1)
    assert [*due, clock.is_due] == [False, True]
    assert clock.now_ms() == T0 + ASK_EVERY_MS


def test_answer_that_was_long_under_way_changes_nothing(clock: CrawlClock, boot: ManualClock) -> None:
    """Whenever between question and answer it was given: an estimate that it allows stays."""
    sent_ms = clock.boot_ms()
    boot.advance(400)
    clock.record_time(T0 + 150, sent_ms)
    assert clock.now_ms() == T0 + 400


@pytest.mark.parametrize(("told_ms", "now_ms"), [(-30, -20), (0, 10), (5, 10), (30, 30)])
def test_difference_is_followed_as_far_as_is_certain(
    clock: CrawlClock, boot: ManualClock, told_ms: int, now_ms: int
) -> None:
    """An answer that was 10 ms under way was given now at the latest, and 10 ms ago at the earliest."""
    sent_ms = clock.boot_ms()
    boot.advance(10)
    clock.record_time(T0 + told_ms, sent_ms)
    assert clock.now_ms() == T0 + now_ms


@pytest.mark.parametrize(
    ("told_ms", "agrees"), [(0, True), (-1_000, True), (-1_001, False), (9_000, True), (9_001, False)]
)
def test_slow_answer_is_no_clock_that_was_set(clock: CrawlClock, boot: ManualClock, told_ms: int, agrees: bool) -> None:
    """Eight seconds under way, and so given at any moment of them; a second more or less is drift."""
    sent_ms = clock.boot_ms()
    boot.advance(8_000)
    assert clock.agrees(T0 + told_ms, sent_ms) is agrees


def test_scripts_are_told_the_crawls_time(own_server: PrivateRedis, crawl_name: str, boot: ManualClock) -> None:
    """Redis' clock is asked once; then an hour passes for the node alone, and that is what a script hears of."""
    own_server.client.delete(CLOCK)

    async def work() -> tuple[int, int, int]:
        client = RedisClient(own_server.url, crawl_clock=CrawlClock(boot))
        look = scripts.look_partition(PartitionKeys(crawl_name, 0))
        [before] = await client.run([look])
        boot.advance(HOUR_MS)
        [after] = await client.run([look])
        now_ms = client.now_ms()
        await client.close()
        assert isinstance(before, PartitionView)
        assert isinstance(after, PartitionView)
        return before.now_ms, after.now_ms, now_ms

    before_ms, after_ms, now_ms = asyncio.run(work())
    assert after_ms - before_ms == HOUR_MS
    assert now_ms == after_ms
    adjust = own_server.client.hget(CLOCK, "adjust")
    assert isinstance(adjust, bytes)
    assert HOUR_MS - 5_000 < int(adjust) <= HOUR_MS


def test_second_node_has_the_time_of_the_first(own_server: PrivateRedis, crawl_name: str, boot: ManualClock) -> None:
    """What was added to the server's clock is told with the first connection."""
    own_server.client.hset(CLOCK, mapping={"adjust": 2 * HOUR_MS, "told": 0, "by": "other"})

    async def work() -> int:
        client = RedisClient(own_server.url, crawl_clock=CrawlClock(boot))
        [view] = await client.run([scripts.look_partition(PartitionKeys(crawl_name, 0))])
        await client.close()
        assert isinstance(view, PartitionView)
        return view.now_ms

    seconds, _ = own_server.client.time()
    assert abs(asyncio.run(work()) - (seconds * 1000 + 2 * HOUR_MS)) < 5_000


def test_clock_set_back_while_no_node_ran_is_seen_at_the_first_connection(
    own_server: PrivateRedis, crawl_name: str, boot: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The time goes on from where the last node left it, hosts wait for no hour, and one line says so."""
    seconds, _ = own_server.client.time()
    told_ms = seconds * 1000 + HOUR_MS
    own_server.client.delete(CLOCK)
    own_server.client.hset(CLOCK, mapping={"told": told_ms, "by": "gone"})

    async def work() -> list[int]:
        client = RedisClient(own_server.url, crawl_clock=CrawlClock(boot))
        look = scripts.look_partition(PartitionKeys(crawl_name, 0))
        views = [(await client.run([look]))[0]]
        boot.advance(ASK_EVERY_MS)
        views += await client.run([look])
        await client.close()
        return [view.now_ms for view in views]

    first_ms, second_ms = asyncio.run(work())
    assert first_ms == told_ms
    # Redis goes by its own clock, however long that takes here.
    assert ASK_EVERY_MS <= second_ms - first_ms < HOUR_MS / 2
    set_s = re.search(r"the clock of Redis was set by -(\d+)\.\d s", caplog.text)
    assert set_s is not None
    # The hour, and what the node's clock has gone on since, less what has passed for Redis.
    assert HOUR_MS / 2 < 1_000 * int(set_s[1]) <= HOUR_MS + ASK_EVERY_MS
    kept = int(own_server.client.hget(CLOCK, "adjust") or 0)
    assert HOUR_MS / 2 < kept <= HOUR_MS + ASK_EVERY_MS, "likewise"
