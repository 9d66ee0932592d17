"""Sums over owned partitions."""

from __future__ import annotations

from dataclasses import replace

from bigcrawl.metrics.source import OwnedSums
from bigcrawl.redisdb.scripts import PartitionView


def view(**fields: int) -> PartitionView:
    state = {name.encode(): b"%d" % value for name, value in fields.items()}
    return PartitionView(0, True, "n", 1, 1_000, 1, 2, 3, -1, 4, "0-0", state, 5, 6)


def test_a_look_replaces_the_last_one() -> None:
    """Hosts by state, URLs by place, counters; nothing is added to what was summed before."""
    sums = OwnedSums()
    for _ in range(2):
        sums.add_up_views([view(appended_urls=10, folded_urls=7, hot=8, seen=100), view(seen=11, hot=-1)])
    assert sums.hosts == {"ready": 2, "waiting": 4, "busy": 6, "snoozed": 10, "retired": 12}
    assert (sums.inbox, sums.hot, sums.taken) == (3, 8, 8)
    assert sums.counts["seen"] == 111
    assert sums.age_s < 60


def test_a_partition_that_left_is_summed_no_more() -> None:
    """Its new owner shows it."""
    sums = OwnedSums()
    sums.add_up_views([view(seen=5)])
    sums.add_up_views([])
    assert not sums.counts["seen"]
    assert not sum(sums.hosts.values())


def test_a_field_that_is_no_number_harms_nobody() -> None:
    """The beat goes on, and the other partitions are summed."""
    sums = OwnedSums()
    broken = replace(view(), fields={b"hot": b"x", b"seen": b"9"})
    sums.add_up_views([broken, view(seen=5)])
    assert sums.counts["seen"] == 5
