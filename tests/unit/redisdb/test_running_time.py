"""How long Redis is known to have run: what it cannot forget any more, however long it stays away."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.crawl_clock import FORGETTABLE_MS, GAP_MS_MAX, CrawlClock, RunningTime
from tests.support.redis_servers.one_clock import OneClock

if TYPE_CHECKING:
    from tests.support.redis_servers.redis_cluster import PrivateCluster


class Redis:
    """Is asked on a clock of the test's own."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.running = RunningTime(CrawlClock(self.clock))

    def answer_after(self, gap_ms: int, takes_ms: int = 0) -> int:
        """Ask after a gap; the answer takes so long. Returns when it was asked."""
        self.clock.advance(gap_ms)
        asked_ms = self.clock.monotonic_ms()
        self.clock.advance(takes_ms)
        self.running.record_answer(asked_ms)
        return asked_ms


def test_time_without_answers_counts_little() -> None:
    """It may have been away, or have stood still."""
    redis = Redis()
    redis.answer_after(100)
    redis.answer_after(120_000)
    assert redis.running.known_ms == 100 + GAP_MS_MAX
    redis.answer_after(200)
    assert redis.running.known_ms == 300 + GAP_MS_MAX


def test_questions_that_overlap_count_once() -> None:
    """All that were asked while it stood still are answered at once, by a Redis that has not run meanwhile."""
    redis = Redis()
    first_ms = redis.answer_after(100)
    redis.clock.advance(10_000)
    for asked_ms in range(first_ms + 1, first_ms + 10_000, 100):
        redis.running.record_answer(asked_ms)
    assert redis.running.known_ms == 101
    redis.answer_after(300)
    assert redis.running.known_ms == 101 + GAP_MS_MAX


def test_back_to_back_questions_count_all_the_time() -> None:
    """So a busy node does not keep what is safe."""
    redis = Redis()
    for _ in range(100):
        redis.answer_after(0, takes_ms=20)
    assert redis.running.known_ms == 1_980


@pytest.mark.parametrize("recoveries", [1, 5])
def test_restart_takes_back_what_may_be_forgotten_once(recoveries: int) -> None:
    """And no time counts until all was told again, however often that is interrupted."""
    redis = Redis()
    for _ in range(20):
        redis.answer_after(500)
    for _ in range(recoveries):
        redis.running.record_restart()
        redis.answer_after(500)
    assert redis.running.known_ms == 10_000 - FORGETTABLE_MS
    redis.running.record_recovery()
    redis.answer_after(500)
    redis.running.record_restart()
    assert redis.running.known_ms == 10_000 - FORGETTABLE_MS, "the recovery itself may be forgotten"


def test_masters_of_a_cluster_run_as_long_as_all_of_them_answer(redis_cluster: PrivateCluster) -> None:
    """Calls that ask one of them say nothing of the others. All are asked once a second."""

    async def scenario() -> None:
        clock = ManualClock()
        client = RedisClient(redis_cluster.url, crawl_clock=OneClock(clock))
        await client.ping()
        before_ms = client.running_ms
        for _ in range(10):
            clock.advance(500)
            await client.command("GET", "bigcrawl:{one}")
        assert client.running_ms == before_ms
        await client.ping()
        assert client.running_ms == before_ms + GAP_MS_MAX
        await client.close()
        client = RedisClient(redis_cluster.url, crawl_clock=CrawlClock(clock))
        await client.ping()
        before_ms = client.running_ms
        for _ in range(4):
            clock.advance(1_000)
            await client.run([])
        assert client.running_ms == before_ms + 4 * GAP_MS_MAX
        await client.close()

    asyncio.run(scenario())
