"""The first fetch of a crawl comes soon: no rest, poll or back-off of the loops stands before it (steps 1 to 11)."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, Final

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.scheduler.node.loops import beat
from tests.support.running.stepped_time import run_stepped
from tests.unit.scheduler.world import QUIET, queued, world_of_one_clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.held import HeldUrl
    from tests.unit.scheduler.world import World

SOON_MS: Final = 1_000
LONG_AFTER_BOOT_MS: Final = 3_600_000
NEEDED: Final = ("BIGCRAWL_ALLOW_PRIVATE_ADDRESSES", "BIGCRAWL_WARC_DIR")
DEFAULTS: Final = {name.removeprefix("BIGCRAWL_").lower(): None for name in QUIET if name not in NEEDED}
FEW: Final = {"partitions": 4}  # joining 256 takes most of a second of CPU; rows that obey robots.txt do
LITTLE: Final = [
    *({"CONCURRENT_REQUESTS": fetches} for fetches in (1, 4, 16)),
    *({"in_process_max": 1}, {"hot_urls": 1_000}),
]
OFFERS: Final = 120
DELAY_MS: Final = 30  # of a message, at most
STANDSTILL_MS: Final = 1_200
TURNS: Final = 100  # of the event loop: more than there are from an offered URL to its fetch


class Engine:
    """Asks for requests when it is given one, and when it is woken; nothing else makes it ask."""

    def __init__(self, node: Node) -> None:
        self.started: list[HeldUrl] = []
        self._node = node
        node.handout.wake_engine = self.ask

    def offer(self, url: str) -> None:
        self._node.offer(queued(url)[0])
        self.ask()

    def ask(self) -> None:
        asyncio.get_running_loop().call_soon(self._ask)

    def end_all(self, w: World, *, but: int = 0) -> dict[str, int]:
        """End what was started, but for the latest; when that was, by URL."""
        started_ms = {}
        while len(self.started) > but:
            held = self.started.pop(0)
            started_ms[held.url] = held.fetching_since_ms
            w.end(self._node, held)
        return started_ms

    def _ask(self) -> None:
        while (held := self._node.handout.buffer.pop()) is not None:
            self.started.append(held)
        if not self._node.handout.buffer.waiting:
            self._node.pump.wake()


async def wait_until(clock: ManualClock, is_over: Callable[[], bool]) -> int:
    """Wait for something, but not for ever; how long it took."""
    before_ms = clock.monotonic_ms()
    for _ in range(10 * SOON_MS):
        if is_over():
            break
        await asyncio.sleep(0.001)
    return clock.monotonic_ms() - before_ms


def first_fetch_ms(tmp_path: Path, crawl: str, redis_url: str, offered_ms: int, settings: dict[str, Any]) -> int:
    """How long after a start request, which comes so long after the start, the engine or robots.txt is asked."""
    clock = ManualClock()
    clock.advance(LONG_AFTER_BOOT_MS)

    async def scenario() -> int:
        async with world_of_one_clock(clock, tmp_path, crawl, redis_url, **DEFAULTS | settings) as w:
            node = w.new_node()
            await node.start()
            assert clock.monotonic_ms() == LONG_AFTER_BOOT_MS, "joining rests"
            engine = Engine(node)
            await asyncio.sleep(offered_ms / 1000)
            engine.offer("http://a.example/")
            passed_ms = await wait_until(clock, lambda: bool(w.web.asked or engine.started))
            await node.runner.stop()
            return passed_ms

    return run_stepped(clock, scenario())


@pytest.mark.parametrize(
    "offered_ms", [0, 130, pytest.param(490, marks=pytest.mark.long("a moment between others")), 990, 5_000]
)
@pytest.mark.parametrize("robots", ["obey", QUIET["BIGCRAWL_ROBOTS"]])
def test_first_fetch_comes_within_a_second(
    tmp_path: Path, crawl_name: str, redis_url: str, robots: str, offered_ms: int
) -> None:
    """With the settings of a new project, and whenever the start request comes; robots.txt is first where it counts."""
    few = FEW if robots == QUIET["BIGCRAWL_ROBOTS"] else {}
    assert first_fetch_ms(tmp_path, crawl_name, redis_url, offered_ms, {"robots": robots} | few) < SOON_MS


@pytest.mark.parametrize("little", LITTLE, ids=str)
@pytest.mark.parametrize("offered_ms", [130, 990])
def test_first_fetch_does_not_wait_for_much_to_gather(
    tmp_path: Path, crawl_name: str, redis_url: str, offered_ms: int, little: dict[str, Any]
) -> None:
    """However few URLs a node may fetch at a time, take, or have in Redis."""
    assert first_fetch_ms(tmp_path, crawl_name, redis_url, offered_ms, little | FEW) < SOON_MS


def test_standstill_costs_no_more_than_its_time(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Wherever the process stands still between an offered URL and its fetch, what came meanwhile is not too late.

    Nor is the silence of a process that could not listen taken for that of a name server.
    """
    clock = ManualClock()

    async def scenario() -> dict[int, int]:
        async with world_of_one_clock(clock, tmp_path, crawl_name, redis_url) as w:
            node = w.new_node()
            await node.start()
            engine = Engine(node)
            took_ms = {}
            for turns in range(1, TURNS, 3):
                asyncio.get_running_loop().stand_still(turns, STANDSTILL_MS)  # type: ignore[attr-defined]
                engine.offer(f"http://h{turns}.example/")
                took_ms[turns] = await wait_until(clock, lambda: bool(engine.started))
                engine.end_all(w)
            await node.runner.stop()
            return took_ms

    took_ms = run_stepped(clock, scenario())
    assert max(took_ms.values()) < STANDSTILL_MS + SOON_MS, took_ms


@pytest.mark.parametrize("seed", range(3))
def test_no_order_of_events_loses_a_wake(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """However long calls of Redis and work on files are under way, and whatever comes meanwhile.

    The beat, which looks at the partitions and would notice in the end, comes too late here.
    """
    monkeypatch.setattr(beat, "BEAT_S", 60)
    clock, dice = ManualClock(), random.Random(seed)

    async def scenario() -> dict[str, int]:
        async with world_of_one_clock(clock, tmp_path, crawl_name, redis_url, partitions=1) as w:
            node = w.new_node()
            await node.start()
            engine = Engine(node)
            took_ms: dict[str, int] = {}
            offered_ms: dict[str, int] = {}
            for number in range(OFFERS):
                url = f"http://h{number}.example/"
                offered_ms[url] = clock.monotonic_ms()
                engine.offer(url)
                await asyncio.sleep(dice.randrange(80) / 1000)
                took_ms |= engine.end_all(w, but=1)
            await asyncio.sleep(5)
            took_ms |= engine.end_all(w, but=0)
            await node.runner.stop()
            return {url: started_ms - offered_ms[url] for url, started_ms in took_ms.items()}

    took_ms = run_stepped(clock, scenario(), lambda: dice.randrange(DELAY_MS))
    assert len(took_ms) == OFFERS
    assert max(took_ms.values()) < SOON_MS, took_ms
