"""Partitions move by load: from a node that is behind to those that are not, and no others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bigcrawl.scheduler.crawl.assignment import LiveNode, assign
from bigcrawl.scheduler.crawl.measured_capacity import BEHIND_MS, LEAST, LOWER_MS, RAISE_MS, STEP, MeasuredCapacity
from bigcrawl.scheduler.crawl.membership import Membership
from tests.unit.scheduler.world import connected, make_config

if TYPE_CHECKING:
    from pathlib import Path

MINUTE_MS = 60_000


def held_for(capacity: MeasuredCapacity, since_ms: int, ms: int, late_ms: float, others: list[float]) -> int:
    """Tell it the same once a second for so long; return when that ended."""
    for now_ms in range(since_ms, since_ms + ms + 1, 1_000):
        capacity.update(late_ms, others, now_ms)
    return since_ms + ms


def test_node_that_is_behind_alone_lowers_its_capacity_once_a_minute() -> None:
    capacity = MeasuredCapacity(2.0)
    now_ms = held_for(capacity, 0, LOWER_MS - 1_000, BEHIND_MS, [0, BEHIND_MS])
    assert capacity.value == 2.0
    now_ms = held_for(capacity, now_ms + 1_000, 0, BEHIND_MS, [0, BEHIND_MS])
    assert capacity.value == pytest.approx(2.0 * STEP)
    held_for(capacity, now_ms + 1_000, LOWER_MS - 1_000, BEHIND_MS, [0])
    assert capacity.value == pytest.approx(2.0 * STEP**2)


@pytest.mark.parametrize(
    ("late_ms", "others"),
    [
        pytest.param(BEHIND_MS, [BEHIND_MS, 3 * BEHIND_MS], id="all are behind"),
        pytest.param(BEHIND_MS, [], id="it is alone"),
        pytest.param(BEHIND_MS - 1, [0, 0], id="it keeps up"),
    ],
)
def test_capacity_stays_if_moving_would_not_help(late_ms: float, others: list[float]) -> None:
    capacity = MeasuredCapacity(1.0)
    held_for(capacity, 0, 2 * RAISE_MS, late_ms, others)
    assert capacity.value == 1.0


def test_one_moment_without_lateness_begins_the_minute_anew() -> None:
    capacity, now_ms = MeasuredCapacity(1.0), 0
    for _ in range(5):
        now_ms = held_for(capacity, now_ms, LOWER_MS - 1_000, BEHIND_MS, [0])
        now_ms = held_for(capacity, now_ms + 500, 0, 0, [0]) + 500
    assert capacity.value == 1.0


def test_capacity_comes_back_slowly_and_no_further_than_configured() -> None:
    capacity = MeasuredCapacity(3.0)
    now_ms = held_for(capacity, 0, 60 * MINUTE_MS, 9_000, [0])
    assert capacity.value == pytest.approx(3.0 * LEAST)
    held_for(capacity, now_ms, RAISE_MS, 0, [0])
    assert capacity.value == pytest.approx(3.0 * LEAST / STEP)
    held_for(capacity, now_ms + RAISE_MS, 30 * RAISE_MS, 0, [0])
    assert capacity.value == 3.0


def test_a_slow_node_among_fast_ones_comes_to_what_it_can_do_in_half_an_hour() -> None:
    """One of three nodes has 60 % of the power of the others. It ends within 15 % of that, and few partitions move.

    A node is behind if it has more partitions than it has power for; the work is 90 % of all power.
    """
    partitions = 256
    power = {"a": 1.0, "b": 1.0, "slow": 0.6}
    can_serve = {node: share * partitions / (0.9 * sum(power.values())) for node, share in power.items()}
    capacities = {node: MeasuredCapacity(1.0) for node in power}
    owners: list[str] = assign(partitions, {node: LiveNode(node) for node in power})
    moved, changes_at = 0, []
    for minute in range(30):
        owned = {node: owners.count(node) for node in power}
        late = {node: 3_000.0 if owned[node] > can_serve[node] else 0.0 for node in power}
        for node, capacity in capacities.items():
            others = [late[other] for other in power if other != node]
            held_for(capacity, minute * MINUTE_MS, MINUTE_MS - 1_000, late[node], others)
        members = {
            node: LiveNode(
                node, capacities[node].value, frozenset(p for p, owner in enumerate(owners) if owner == node)
            )
            for node in power
        }
        before, owners = owners, assign(partitions, members)
        if before != owners:
            changes_at.append(minute)
        moved += sum(x != y for x, y in zip(before, owners, strict=True))
    assert owners.count("slow") == pytest.approx(can_serve["slow"], rel=0.15)
    assert moved <= partitions // 4
    assert len(changes_at) <= 8


def test_a_nodes_report_moves_partitions_if_the_settings_say_so(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two nodes report in turns for some minutes of the crawls' time; the first is behind all the while."""

    async def shares(*, measured: bool) -> tuple[int, int]:
        config = make_config(tmp_path / str(measured), f"{crawl_name}{measured}", capacity_measured=measured)
        async with connected(redis_url) as client:
            first, second = Membership(config, "first"), Membership(config, "second")
            time_ms = [client.now_ms()]
            monkeypatch.setattr(client, "now_ms", lambda: time_ms[0])
            for _ in range(4):
                await first.beat(client, {}, (), late_ms=9_000)
                await second.beat(client, {}, ())
                time_ms[0] += LOWER_MS
            await first.beat(client, {}, (), late_ms=9_000)
            return len(first.wanted(())), len(second.wanted(()))

    even, moved = asyncio.run(shares(measured=False)), asyncio.run(shares(measured=True))
    assert even[0] == even[1]
    assert moved[0] < moved[1]
    assert sum(moved) == sum(even), "both compute the same"
