"""The first fetch of a crawl comes soon: no rest, poll or back-off of the loops stands before it (steps 1 to 11).

Among the long tests: one time in a hundred and fifty, on a busy machine, it took 5.8 s of the test's clock.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest

from bigcrawl.scheduler.node.loops.pump import PUMP_BUSY_S
from tests.unit.scheduler.world import QUIET, queued, world

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bigcrawl.clock import ManualClock
    from bigcrawl.scheduler.node.node import Node
    from tests.unit.scheduler.world import World

pytestmark = pytest.mark.fault

SOON_MS: Final = 1_000
STEP_MS: Final = 10
NEEDED: Final = ("BIGCRAWL_ALLOW_PRIVATE_ADDRESSES", "BIGCRAWL_WARC_DIR")
DEFAULTS: Final = {name.removeprefix("BIGCRAWL_").lower(): None for name in QUIET if name not in NEEDED}
_sleep = asyncio.sleep


class Naps:
    """Stands for `asyncio.sleep`: whoever sleeps wakes up when the test's clock says so."""

    def __init__(self, clock: ManualClock) -> None:
        self.asleep: dict[asyncio.Task[Any] | None, tuple[float, asyncio.Future[None]]] = {}
        self._clock = clock

    async def __call__(self, seconds: float) -> None:
        if seconds <= 0:
            await _sleep(0)
            return
        task, alarm = asyncio.current_task(), asyncio.get_running_loop().create_future()
        self.asleep[task] = self._clock.monotonic_ms() + seconds * 1000, alarm
        try:
            await alarm
        finally:
            del self.asleep[task]

    async def wake_due(self) -> None:
        """Wake whose time has come, and let them go on."""
        for ends_ms, alarm in list(self.asleep.values()):
            if ends_ms <= self._clock.monotonic_ms() and not alarm.done():
                alarm.set_result(None)
        await _sleep(0)


class Loops:
    """The loops of a node, each turned when its rest is over by the clock that the test moves."""

    def __init__(self, w: World, node: Node, naps: Naps) -> None:
        self._clock, self._node, self._naps = w.clock, node, naps
        self._due_ms = dict.fromkeys((node.pump, node.fold, node.beat, node.watch, node.steer), 0)

    async def run_until(self, is_over: Callable[[], bool], most_ms: int) -> int:
        """Let them run; return how much time had to pass, at most that much."""
        for passed_ms in range(0, most_ms, STEP_MS):
            await self._turn()
            if is_over():
                return passed_ms
            self._clock.advance(STEP_MS)
        return most_ms

    async def _turn(self) -> None:
        await self._naps.wake_due()
        node, now_ms = self._node, self._clock.monotonic_ms()
        if node.pump._wake.is_set():
            node.pump._wake.clear()
            self._due_ms[node.pump] = now_ms
        for loop, due_ms in self._due_ms.items():
            if due_ms <= now_ms:
                self._due_ms[loop] = now_ms + round(1000 * max(PUMP_BUSY_S, await loop.turn()))
        while deciding := node.parts.gatekeeper._tasks - self._naps.asleep.keys():
            await asyncio.wait(deciding, timeout=0.01)


def is_handed_out(node: Node) -> bool:
    """The engine asks for a request, as it does whenever it has nothing to do."""
    if node.handout.pop() is not None:
        return True
    node.wake()
    return False


@pytest.mark.parametrize("offered_ms", [0, 130, 490, 990, 5_000])
@pytest.mark.parametrize("robots", ["obey", QUIET["BIGCRAWL_ROBOTS"]])
def test_first_fetch_comes_within_a_second(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, robots: str, offered_ms: int
) -> None:
    """With the settings of a new project, and whenever the start request comes; where robots.txt counts, it is first.

    No time passes while the node joins: a sleep there would never end.
    """
    settings: dict[str, Any] = {**DEFAULTS, "robots": robots}

    async def scenario() -> int:
        async with asyncio.timeout(120), world(tmp_path, crawl_name, redis_url, **settings) as w:
            naps = Naps(w.clock)
            monkeypatch.setattr(asyncio, "sleep", naps)
            node = await w.joined()
            loops = Loops(w, node, naps)
            await loops.run_until(lambda: False, offered_ms)
            node.offer(queued("http://a.example/")[0])
            return await loops.run_until(lambda: bool(w.web.asked) or is_handed_out(node), 10 * SOON_MS)

    assert asyncio.run(scenario()) < SOON_MS
