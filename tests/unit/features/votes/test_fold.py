"""A partition that counts votes: what pages say of a URL decides when it is fetched, and outlives its owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.config import read_config
from bigcrawl.features.votes.fold import Votes
from bigcrawl.features.votes.ranks import received_of
from bigcrawl.features.votes.rows import VOTED, pack_votes
from bigcrawl.links import Links
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.budgets.in_degrees import EMPTY_COUNTS, InDegreeRanks
from bigcrawl.scheduler.partition.fold import step_sources
from bigcrawl.scheduler.partition.fold.feature import features_of
from bigcrawl.scheduler.partition.fold.rejected import problem_of
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.queues.prioritizers import SafePrioritizer, as_given, make_prioritizer
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.member import PRIORITY_MAX
from bigcrawl.scheduler.records.observed import pack_observed
from bigcrawl.scheduler.records.queued_url import encode_batch
from tests.support.keys import pld_key, url_key
from tests.support.worlds.partition_world import PartitionWorld, make_runs_early, pld_of, waiting_by_level

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bigcrawl.scheduler.records.queued_url import QueuedUrl

LIMITS = PartitionLimits(host_hot_max=10_000, host_hot_low=10_000, priority_bias=1_000, features=(Votes(),))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state" / "p0007"


def open_with(directory: Path, name: str = "opic", epoch: int = 1) -> Partition:
    partition = Partition.open(directory, epoch, LIMITS, pld_of=pld_of, pld_key=pld_key)
    prioritizer = make_prioritizer(name) or as_given
    scores = SafePrioritizer(prioritizer, InDegreeRanks(EMPTY_COUNTS))
    partition.sources.set_prioritizing(scores)
    return partition


def link(number: int, priority: int = 0) -> QueuedUrl:
    address = f"http://a.example/{number}"
    return links_encoder(Links([address], priority=priority), 1)(url_key(address), address)


def offer(world: PartitionWorld, urls: Iterable[QueuedUrl], votes: Iterable[tuple[int, float, int]] = ()) -> None:
    """A batch with votes, by number of the URL."""
    world.offer(urls)
    rows = [(link(number).key, share, priority) for number, share, priority in votes]
    world.inbox[-1] = world.inbox[-1]._replace(observed=pack_observed({VOTED: pack_votes(rows)}))


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
    monkeypatch.setattr(step_sources, "_LEAST", 10)
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


@pytest.mark.parametrize("field", ["alone", "observed"])
def test_votes_that_cannot_be_read_are_set_aside(directory: Path, field: str) -> None:
    """The rest of the entry counts, and nothing of them does."""
    partition = open_with(directory)
    whole = pack_votes([(1, 1.0, 0)])
    broken = (whole if field == "alone" else pack_observed({VOTED: whole}))[:-1]
    step = partition.step([InboxEntry("1-1", encode_batch([link(1)]), **{field: broken})], 0, {})
    assert (step.new, step.rejected, partition.state.waiting) == (1, 1, 1)
    [file] = directory.glob(f"rejected/*-{field}")
    assert file.read_bytes() == broken
    assert problem_of(field, broken)
    assert problem_of("votes", whole[:-1]), "as earlier versions named it"
    assert not problem_of("votes", whole)
    assert not len(partition.state.tables["votes"])


def test_votes_of_earlier_versions_count(directory: Path) -> None:
    """They came in a field of their own, and may be in one entry with today's."""
    world, partition = PartitionWorld(), open_with(directory)
    offer(world, [link(n) for n in range(40)], [(7, 0.5, 0)])
    earlier = pack_votes([(link(7).key, 0.5, 0), (link(8).key, 2.0, 0)])
    world.inbox[-1] = world.inbox[-1]._replace(alone=earlier)
    world.step(partition, room=2)
    found = {
        number: received_of(url.flags) for number, url in zip(numbers(world.admitted), world.admitted, strict=True)
    }
    assert found == {8: pytest.approx(2.0, rel=0.1), 7: pytest.approx(1.0, rel=0.1)}


def test_a_priority_beyond_all_bounds_counts_as_the_highest(directory: Path) -> None:
    """What a member of a back queue can hold."""
    world, partition = PartitionWorld(), open_with(directory, "")
    offer(world, [link(1), link(2, priority=-9)], [(1, 0.0, 2**31 - 1), (2, 0.0, 0)])
    world.step(partition, room=2)
    assert [url.priority for url in world.admitted] == [PRIORITY_MAX, 0]


def test_votes_are_ignored_if_nobody_asks_for_them(directory: Path) -> None:
    """A node of the crawl that was started with other settings may still send some."""
    world = PartitionWorld()
    limits = PartitionLimits(host_hot_max=10_000, features=features_of(read_config({})))
    partition = Partition.open(directory, 1, limits, pld_of=pld_of, pld_key=pld_key)
    offer(world, [link(1)], [(1, 1.0, 0)])
    world.step(partition, room=1)
    assert world.admitted[0].flags == 0
    assert not len(partition.state.tables["votes"])


@pytest.mark.parametrize("settings", [{"BIGCRAWL_LINK_VOTES": True}, {"BIGCRAWL_PRIORITIZER": "opic"}])
def test_a_setting_or_the_prioritizer_asks_for_them(settings: dict[str, object]) -> None:
    """Either is enough."""
    assert any(isinstance(feature, Votes) for feature in features_of(read_config(settings)))
