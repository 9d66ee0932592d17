"""A memory of keys that grows with the crawl, up to a bound. `test_outbox` has what it remembers at one size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.node.control import FORGOTTEN
from bigcrawl.scheduler.node.link_graph import RecentKeys
from tests.unit.scheduler.gates.test_speed import awaited
from tests.unit.scheduler.world import world

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("twin")

KEYS = np.random.default_rng(7).integers(1 << 64, size=1 << 12, dtype=np.uint64)


@pytest.mark.parametrize("at_once", [1, 60])
def test_places_are_doubled_for_new_keys_up_to_the_bound(at_once: int) -> None:
    recent = RecentKeys(16, 1 << 10)
    sizes = []
    for start in range(0, len(KEYS), at_once):
        recent.remember_each(KEYS[start : start + at_once].tolist())
        sizes.append(len(recent._keys))
    assert sizes[0] <= 32
    assert sizes == sorted(sizes)
    assert sizes[-1] == 1 << 10


@pytest.mark.parametrize("grown", [32, 1 << 10])
def test_what_is_remembered_outlives_a_doubling_and_nothing_else_is_there(grown: int) -> None:
    """A key is recent after a doubling if it was before; a key that never came is not, whatever its bits."""
    recent = RecentKeys(16, grown)
    kept: list[int] = []
    for key in KEYS[:200].tolist():
        before = recent._keys.copy()
        recent.remember(key)
        if len(recent._keys) > len(before):
            mask = len(before) // 2 - 1
            own = [int(old) for place, old in enumerate(before) if int(old) & mask == place // 2]
            kept = [old for old in own if (old ^ key) & mask]  # the key may have taken one's place
            assert kept
            assert not any(map(recent.remember, kept))
    assert kept
    strange = [each for each in range(4 * grown) if each not in set(KEYS.tolist())]
    assert all(RecentKeys(16, grown).remember(each) for each in strange)
    fresh = RecentKeys(16, grown)
    fresh.remember_each(KEYS[:200].tolist())
    assert all(fresh.remember(each) for each in strange)


def test_small_numbers_of_old_keys_never_grow_it() -> None:
    recent = RecentKeys(1 << 8, 1 << 10)
    for _ in range(1_000):
        recent.remember_each(list(range(8)))
    assert len(recent._keys) == 1 << 8


@awaited
async def test_urls_are_sent_again_after_an_order_to_forget_some(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Of `scrapy frontier forget`; once for each order."""
    async with world(tmp_path, crawl_name, redis_url) as made:
        node = await made.joined()
        control, outbox = node.parts.control, node.parts.outbox
        await control.read()
        assert outbox.remember(7)
        for _ in range(2):
            await made.client.commands([("HINCRBY", CrawlKeys(made.config.crawl.name).control, FORGOTTEN, "1")])
            assert not outbox.remember(7)
            await control.read()
            assert outbox.remember(7)
            await control.read()
            assert not outbox.remember(7)
