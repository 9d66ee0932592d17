"""What runs a node's loops: which errors it waits out, which end the crawl, and what is said of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

import pytest

from bigcrawl.exceptions import (
    BigcrawlError,
    ConfigError,
    CorruptionError,
    OwnershipLostError,
    TransientStoreError,
)
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.reply_errors import RedisRefusedError, RedisRestartedError
from bigcrawl.scheduler.node.loops.loop import AFTER_RESTART_S, RETRY_S, Loop, LoopRunner
from bigcrawl.scheduler.node.troubles import Troubles
from tests.support.logs import of_bigcrawl

if TYPE_CHECKING:
    from collections.abc import Sequence

DAMAGED, ELSEWHERE = "/p0001/manifest", "/elsewhere"
GOES_ON_S = 7.0


def damage(path: str) -> CorruptionError:
    return CorruptionError(path, 0, "a record", "something else")


class Scripted(Loop):
    """Goes through what it is given, an error or how long to rest; then it is cut off."""

    name: ClassVar[str] = "scripted"

    def __init__(self, turns: Sequence[Exception | float]) -> None:
        self._turns = list(turns)
        self.rests: list[float] = []
        self.failures = 0

    async def turn(self) -> float:
        if not self._turns:
            raise asyncio.CancelledError
        turn = self._turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        return turn

    async def rest(self, rest_s: float) -> None:
        self.rests.append(rest_s)

    async def after_failure(self) -> None:
        self.failures += 1


class Run:
    """One loop, run to the end of its script."""

    def __init__(self, *turns: Exception | float) -> None:
        self.loop = Scripted(turns)
        self.client = RedisClient("redis://127.0.0.1:1")
        self.troubles = Troubles(self.client)
        self.fatal: list[BigcrawlError] = []
        self.set_apart: list[CorruptionError] = []
        runner = LoopRunner([self.loop], self.troubles, self._set_apart_by, self.fatal.append)
        try:
            asyncio.run(runner.run(self.loop))
            self.has_ended = True
        except asyncio.CancelledError:
            self.has_ended = False

    def _set_apart_by(self, error: CorruptionError) -> bool:
        if str(error.path) == DAMAGED:
            self.set_apart.append(error)
        return str(error.path) == DAMAGED


@pytest.mark.parametrize(
    ("error", "rest_s", "is_trouble", "failures"),
    [
        (RedisRestartedError("restarted"), AFTER_RESTART_S, False, 0),
        (RedisRefusedError("OOM"), RETRY_S, True, 0),
        (TransientStoreError("away"), RETRY_S, True, 1),
        (OwnershipLostError("lost"), RETRY_S, True, 1),
        (damage(DAMAGED), RETRY_S, False, 0),
    ],
    ids=["restarted", "refused", "away", "lost", "damaged"],
)
def test_what_may_pass_is_waited_out(error: Exception, rest_s: float, *, is_trouble: bool, failures: int) -> None:
    """The loop rests and goes on; it does what may help where Redis may be dead, and nothing where Redis is there."""
    run = Run(error)
    assert (run.has_ended, run.fatal, run.loop.rests) == (False, [], [rest_s])
    assert run.troubles.is_failing("scripted") is is_trouble
    assert run.loop.failures == failures
    assert run.troubles.is_restarted is isinstance(error, RedisRestartedError)


@pytest.mark.parametrize("error", [ConfigError("a setting"), damage(ELSEWHERE)], ids=["config", "no partition's file"])
def test_what_waiting_does_not_mend_ends_the_crawl(error: BigcrawlError) -> None:
    """Told as it is, once; the loop turns no more."""
    run = Run(error, GOES_ON_S)
    assert (run.has_ended, run.fatal, run.loop.rests) == (True, [error], [])


def test_fault_of_ours_ends_the_crawl_and_names_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    """With a traceback in the log, and the error in what is told."""
    run = Run(ZeroDivisionError("by nought"), GOES_ON_S)
    assert run.has_ended
    [told] = run.fatal
    assert "scripted" in str(told)
    assert "by nought" in str(told)
    assert [record.exc_info is not None for record in of_bigcrawl(caplog)] == [True]


def test_loop_that_is_well_again_is_no_trouble(caplog: pytest.LogCaptureFixture) -> None:
    """However often it failed, one line says that the node waits and one that it goes on."""
    away = TransientStoreError("away")
    with caplog.at_level("INFO"):
        run = Run(away, away, away, GOES_ON_S, GOES_ON_S)
    assert not run.troubles.is_failing("scripted")
    assert run.loop.rests == [RETRY_S] * 3 + [GOES_ON_S] * 2
    assert [record.getMessage() for record in of_bigcrawl(caplog)] == ["waiting: away", "the crawl continues"]


@pytest.mark.parametrize("doubt", ["restarted", "in doubt"])
def test_success_counts_only_when_redis_and_the_node_agree(doubt: str) -> None:
    """A round that did nothing because others come first says nothing of what failed."""
    client = RedisClient("redis://127.0.0.1:1")
    troubles = Troubles(client)
    troubles.record_failure("fold", TransientStoreError("away"))
    if doubt == "restarted":
        troubles.record_restart()
    else:
        client.in_doubt.add(3)
    troubles.record_success("fold")
    assert troubles.is_failing("fold")
    troubles.record_recovery()
    client.in_doubt.clear()
    troubles.record_success("fold")
    assert not troubles.is_failing("fold")


def test_stopped_loops_are_cut_off_where_they_are() -> None:
    """One in a turn that never ends too; a runner that was never started has nothing to stop."""

    class Hanging(Scripted):
        async def turn(self) -> float:
            await asyncio.Event().wait()
            return 0.0

    async def scenario() -> None:
        loops = [Hanging([]), Hanging([])]
        runner = LoopRunner(
            loops, Troubles(RedisClient("redis://127.0.0.1:1")), lambda _: False, lambda error: pytest.fail(str(error))
        )
        await runner.stop()
        runner.start()
        await asyncio.sleep(0)
        await asyncio.wait_for(runner.stop(), 60)
        assert all(task.cancelled() for task in runner._tasks)

    asyncio.run(scenario())
