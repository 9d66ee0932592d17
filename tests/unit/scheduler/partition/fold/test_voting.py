"""A partition that counts votes: what pages say of a URL decides when it is fetched, and outlives its owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.links import Links
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.budgets.in_degrees import EMPTY_COUNTS, Ranks
from bigcrawl.scheduler.partition.fold import step_sources
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.queues.prioritizers import Prioritizing, as_given, make_prioritizer
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.queued_url import encode_batch
from bigcrawl.scheduler.records.votes import pack_votes, received_of
from tests.support.keys import pld_key, url_key
from tests.support.worlds.partition_world import PartitionWorld, make_runs_early, pld_of, waiting_by_level

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bigcrawl.scheduler.records.queued_url import QueuedUrl

LIMITS = PartitionLimits(host_hot_max=10_000, host_hot_low=10_000, priority_bias=1_000)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state" / "p0007"


def open_with(directory: Path, name: str = "opic", epoch: int = 1) -> Partition:
    partition = Partition.open(directory, epoch, LIMITS, pld_of=pld_of, pld_key=pld_key)
    prioritizer = make_prioritizer(name) or as_given
    scores = Prioritizing(prioritizer, Ranks(EMPTY_COUNTS), counts_votes=True)
    partition.sources.set_prioritizing(scores, counts_links=False)
    return partition


def link(number: int, priority: int = 0) -> QueuedUrl:
    address = f"http://a.example/{number}"
    return links_encoder(Links([address], priority=priority), 1)(url_key(address), address)


def offer(world: PartitionWorld, urls: Iterable[QueuedUrl], votes: Iterable[tuple[int, float, int]] = ()) -> None:
    """A batch with votes, by number of the URL."""
    world.offer(urls)
    rows = [(link(number).key, share, priority) for number, share, priority in votes]
    world.inbox[-1] = world.inbox[-1]._replace(votes=pack_votes(rows))


def numbers(urls: Iterable[QueuedUrl]) -> list[int]:
    return [int(url.body.split(b"/")[-1].partition(b"\x01")[0]) for url in urls]


def test_who_has_received_most_is_fetched_first(directory: Path) -> None:
    """By the votes that come with the URLs; what it has received travels with it."""
    world, partition = PartitionWorld(), open_with(directory)
    offer(world, [link(n) for n in range(40)], [(n, 0.01 * (n + 1), 0) for n in range(40)])
    world.step(partition, room=2)
    assert set(numbers(world.admitted)) <= {38, 39}
    assert [received_of(url.flags) for url in world.admitted] == pytest.approx([0.4, 0.4], rel=0.1)
    partition._check()


def test_votes_that_come_later_count_for_what_waits(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All waiting URLs are scored again each time that half as many again were admitted, and not in between."""
    monkeypatch.setattr(step_sources, "_VOTES_LEAST", 10)
    make_runs_early(monkeypatch, 8)
    world, partition = PartitionWorld(), open_with(directory)
    offer(world, [link(n) for n in range(100)], [(n, 0.01, 0) for n in range(100)])
    world.step(partition, room=10)
    offer(world, [], [(99, 5.0, 0), (99, 5.0, 0)])
    world.step(partition, room=0)
    assert partition.state.turns.rescoring.rescored_ever == 90, "ten were admitted, so it was time"
    assert waiting_by_level(partition)[-1] == 1
    world.step(partition, room=1)
    assert numbers(world.admitted)[-1] == 99
    assert received_of(world.admitted[-1].flags) == pytest.approx(10, rel=0.1)
    for room in (1, 1, 1, 0):
        world.step(partition, room=room)
    assert partition.state.turns.rescoring.rescored_ever == 90, "fewer than half as many again since"
    partition._check()


def test_votes_outlive_their_owner(directory: Path) -> None:
    """They are part of the step that read them: the next owner, after a kill, begins with all of them."""
    world, partition = PartitionWorld(), open_with(directory)
    offer(world, [link(n) for n in range(40)])
    world.step(partition, room=0)
    offer(world, [], [(7, 3.0, 0)])
    world.step(partition, room=0)
    partition = open_with(directory, epoch=2)
    world.bring_up(partition)
    world.step(partition, room=1)
    assert numbers(world.admitted) == [7]
    partition._check()


def test_a_url_that_is_found_again_on_a_better_page_is_raised(directory: Path) -> None:
    """Its second discovery is a duplicate, but the vote says the priority; a lower one changes nothing."""
    world, partition = PartitionWorld(), open_with(directory, "")
    offer(world, [link(n, priority=5) for n in range(40)], [(n, 0.0, 5) for n in range(40)])
    world.step(partition, room=0)
    offer(world, [link(7, priority=200), link(8, priority=-3)], [(7, 0.0, 200), (8, 0.0, -3)])
    world.step(partition, room=0)
    partition = open_with(directory, "", epoch=2)  # which scores again what waits
    world.bring_up(partition)
    world.step(partition, room=0)
    assert waiting_by_level(partition) == (0, 0, 39, 0, 1)
    world.step(partition, room=1)
    assert (numbers(world.admitted), world.admitted[0].priority) == ([7], 200)
    assert received_of(world.admitted[0].flags) == 0
    partition._check()


def test_a_built_in_prioritizer_keeps_the_priority_of_the_better_page(directory: Path) -> None:
    """It scores what no page gave a priority."""
    world, partition = PartitionWorld(), open_with(directory)
    offer(world, [link(n) for n in range(3)], [(0, 9.0, 0), (1, 0.01, 0), (2, 0.01, 300)])
    world.step(partition, room=3)
    assert dict(zip(numbers(world.admitted), (url.priority for url in world.admitted), strict=True))[2] == 300


def test_votes_that_cannot_be_read_are_set_aside(directory: Path) -> None:
    """The rest of the entry counts, and nothing of them does."""
    partition = open_with(directory)
    broken = pack_votes([(1, 1.0, 0)])[:-1]
    step = partition.step([InboxEntry("1-1", encode_batch([link(1)]), votes=broken)], 0, {})
    assert (step.new, step.rejected, partition.state.waiting) == (1, 1, 1)
    [file] = directory.glob("rejected/*-votes")
    assert file.read_bytes() == broken
    assert not len(partition.state.tables.votes)


def test_votes_are_ignored_if_nobody_asks_for_them(directory: Path) -> None:
    """A node of the crawl that was started with other settings may still send some."""
    world = PartitionWorld()
    partition = Partition.open(directory, 1, LIMITS, pld_of=pld_of, pld_key=pld_key)
    offer(world, [link(1)], [(1, 1.0, 0)])
    world.step(partition, room=1)
    assert world.admitted[0].flags == 0
    assert not len(partition.state.tables.votes)
