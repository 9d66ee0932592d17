"""How often the fold looks for due steps: with its ear to the pump while the node has too little to fetch."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bigcrawl.scheduler.node.loops import fold, loop
from tests.unit.scheduler.world import queued, world

if TYPE_CHECKING:
    from pathlib import Path


def test_starved_fold_rests_until_something_happens(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But not where it has just stepped, since more may be due; nor for long, where a time is known."""
    rests: list[tuple[bool, float, float]] = []

    async def rest_until(event: asyncio.Event, least_s: float, most_s: float) -> None:
        rests.append((event.is_set(), least_s, most_s))
        event.clear()

    monkeypatch.setattr(fold, "rest_until", rest_until)

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
            node = await w.joined()
            for turns in range(4):
                if turns == 1:
                    node.offer(queued("http://a.example/")[0])
                    await node.pump.turn()
                    w.clock.advance(1_000)
                await node.fold.rest(await node.fold.turn())
            await node.fold.rest(fold.FOLD_S)

    asyncio.run(scenario())
    starved, enough, asleep = fold.FOLD_STARVED_S, fold.FOLD_S, fold.FOLD_ASLEEP_S
    assert rests == [
        (True, starved, asleep),
        (True, starved, starved),
        (False, starved, asleep),
        (False, starved, asleep),
        (False, enough, asleep),
    ]


def test_rest_is_as_long_as_it_must_be_and_no_longer() -> None:
    """An event that was set before or meanwhile ends it after the least, and is taken."""
    naps: list[float] = []

    async def scenario() -> None:
        event, now = asyncio.Event(), asyncio.get_running_loop().time
        for is_early, is_late, most_s in (
            (True, False, 60),
            (False, True, 60),
            (False, False, 0.03),
            (True, False, 0.01),
        ):
            since = now()
            if is_early:
                event.set()
            if is_late:
                asyncio.get_running_loop().call_later(0.02, event.set)
            await loop.rest_until(event, 0.01, most_s)
            naps.append(now() - since)
            assert not event.is_set()

    asyncio.run(asyncio.wait_for(scenario(), 30))
    assert all(nap >= least for nap, least in zip(naps, (0.009, 0.019, 0.029, 0.009), strict=True))


def test_long_rests_end_together() -> None:
    """With a whole second; no rest becomes longer, or less than half as long. Short ones stay as they are."""
    assert loop.together(7.3, 1.0) == pytest.approx(0.7)
    assert loop.together(7.9996, 1.0) == 1.0
    assert loop.together(7.3, 60.0) == pytest.approx(59.7)
    assert loop.together(7.3, 0.8) == 0.8
