"""A partition with budgets: who is admitted when, and what becomes of the others."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.drum.files import DiskFiles
from bigcrawl.exceptions import CorruptionError, TransientStoreError
from bigcrawl.scheduler.budgets.in_degrees import InDegreeCounts
from bigcrawl.scheduler.partition.directory import verify_newest
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.queued_url import QueuedUrl, encode_batch
from tests.support.disks.faulty_files import Fault, FaultyFiles
from tests.support.keys import pld_key
from tests.support.worlds.partition_world import (
    PartitionWorld,
    SetBudgets,
    is_withheld,
    make_edges,
    make_runs_early,
    make_url,
    pld_of,
    waiting_by_level,
)

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.drum.files import AnyPath

# Room for all URLs of a host: what is held back is so for its budget.
LIMITS = PartitionLimits(host_hot_max=10_000, host_hot_low=10_000)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state" / "p0007"


def open_with(directory: Path, budgets: SetBudgets | None, epoch: int = 1) -> Partition:
    return Partition.open(directory, epoch, LIMITS, budgets=budgets, pld_of=pld_of, pld_key=pld_key)


def admitted_by_pld(world: PartitionWorld, start: int = 0) -> Counter[str]:
    return Counter(pld_of(url.host) for url in world.admitted[start:])


def test_in_each_turn_a_pld_has_its_budget(directory: Path) -> None:
    """One with many URLs on many hosts has its budget in a turn, and so has every other that wants it."""
    world, partition = PartitionWorld(), open_with(directory, SetBudgets(5, {"good.example": 20}))
    world.offer(make_url(i, f"h{i}.farm.example") for i in range(1000))
    world.offer(make_url(2000 + i, f"h{i % 3}.good.example") for i in range(100))
    world.offer(make_url(3000 + i, f"s{i % 8}.example") for i in range(80))
    world.step(partition, room=5 + 20 + 40)
    assert partition.state.turns.state.turn == 0
    assert admitted_by_pld(world) == {"farm.example": 5, "good.example": 20} | {f"s{i}.example": 5 for i in range(8)}
    # From the seventeenth on, a new host takes two places of its PLD's turn, one for its robots.txt.
    assert partition.state.turns.by_turn == {0: 0, 1: 65, 2: 25, 3: 23, 4: 22}
    assert len(partition.state.turns.over) == 980
    world.step(partition, room=65)
    assert admitted_by_pld(world)["farm.example"] == 10
    partition._check()
    world.drain(partition, LIMITS.host_hot_max)


def test_without_budgets_everything_is_in_the_first_turn(directory: Path) -> None:
    """With none, neither turns nor the table of PLDs are ever used, and edges are passed over."""
    world, partition = PartitionWorld(), open_with(directory, None)
    edges = make_edges([("a.example", "b.example")])
    world.offer((make_url(i, f"h{i}.farm.example") for i in range(1000)), edges)
    for _ in range(5):
        world.step(partition, room=100)
    assert world.admitted == [make_url(i, f"h{i}.farm.example") for i in range(500)]
    assert partition.state.turns.state._replace(ordinary=0, joined=0) == (
        *(0, 0, 0, 0, 4, 1, 4, 1, False, 0, 0, False, False, 0, 0),
    )
    assert not any(path.name.startswith(("edge", "pld")) for path in (directory / "e1").iterdir())
    assert partition.in_degrees(np.array([pld_key("b.example")], dtype=np.uint64)).tolist() == [0]


def test_links_raise_a_budget_from_the_step_that_brings_them(directory: Path) -> None:
    """In-degrees are counted before URLs are placed; each linking PLD counts once, and the counts are kept."""
    world, partition = PartitionWorld(), open_with(directory, SetBudgets(1, for_link=1))
    links = make_edges([*((f"s{i}.example", "good.example") for i in range(7)), ("s1.example", "good.example")])
    world.offer((make_url(i, "good.example") for i in range(20)), links)
    world.step(partition, room=8)
    assert partition.state.turns.state.turn == 0
    world.offer([], make_edges([("s1.example", "good.example"), ("good.example", "good.example")]))
    world.step(partition, room=0)
    keys = np.array([pld_key("good.example"), pld_key("s1.example")], dtype=np.uint64)
    partition = open_with(directory, SetBudgets(1, for_link=1), 2)
    assert partition.in_degrees(keys).tolist() == [7, 0]
    assert partition.state.in_degrees == InDegreeCounts.of(np.array([7], dtype=np.uint32))


def test_damaged_edges_are_set_aside(directory: Path) -> None:
    """They are kept under the entry's id and counted; the URLs that came with them are not touched."""
    partition = open_with(directory, SetBudgets(5))
    step = partition.step([InboxEntry("1-0", encode_batch([make_url(1)]), b"no edge")], 10, {})
    assert (step.new, step.rejected) == (1, 1)
    assert (directory / "rejected" / "1-0-edges").read_bytes() == b"no edge"
    step = partition.step([InboxEntry("2-0", b"", make_edges([("a", "b")])), InboxEntry("2-1")], 10, {})
    assert (step.new, step.rejected) == (0, 1)
    assert (directory / "rejected" / "2-1").read_bytes() == b""


def test_a_budget_of_nothing_holds_until_there_is_another(directory: Path) -> None:
    """What is held is neither lost nor looked at again and again, and is let go when budgets change."""
    world, partition = PartitionWorld(), open_with(directory, SetBudgets(0, {"b.example": 10}))
    world.offer(make_url(i, f"{'ab'[i % 2]}.example") for i in range(40))
    for _ in range(12):
        world.step(partition, room=50)
    assert admitted_by_pld(world) == {"b.example": 20}
    assert (len(partition.state.turns.over), is_withheld(partition)) == (20, True)
    number = partition.manifest.number
    world.step(partition, room=50)
    assert partition.manifest.number == number, "a step with nothing to do commits nothing"
    partition = open_with(directory, SetBudgets(0), 2)
    world.bring_up(partition)
    for _ in range(4):
        world.step(partition, room=50)
    assert (partition.state.waiting, is_withheld(partition)) == (20, True)
    partition.sources.set_budgets(SetBudgets(3))
    world.drain(partition, LIMITS.host_hot_max)
    assert not is_withheld(partition)


def test_what_is_over_budget_gets_the_budget_of_the_day(directory: Path) -> None:
    """A PLD that many came to link to, or that an operator raised, passes with its new budget when re-read."""
    world, partition = PartitionWorld(), open_with(directory, SetBudgets(2))
    world.offer(make_url(i, "good.example") for i in range(100))
    world.offer(make_url(1000 + i, f"s{i}.example") for i in range(10))
    world.step(partition, room=0)
    assert len(partition.state.turns.over) == 90
    partition.sources.set_budgets(SetBudgets(50))
    while partition.state.turns.state.turn < 4 or partition.state.turns.state.is_rereading:
        world.step(partition, room=2)
    assert len(partition.state.turns.over) == 0
    assert partition.state.turns.by_turn[5] == 42
    world.drain(partition, LIMITS.host_hot_max)


def test_no_budgets_any_more_is_no_overtaking(directory: Path) -> None:
    """URLs that arrive when budgets have gone stay behind the extra ones of their PLD that are in the front queues."""
    world, partition = PartitionWorld(), open_with(directory, SetBudgets(2))
    world.offer(make_url(i) for i in range(2000))
    while (
        partition.state.turns.state.quantum < 4
        or partition.state.turns.state.extra == 0
        or not waiting_by_level(partition)[1]
    ):
        world.step(partition, room=3)
    while len(partition.state.turns.over) or len(partition.state.turns.by_turn) > 1:
        partition.sources.set_budgets(SetBudgets(2))
        world.step(partition, room=3)
    world.step(partition, room=max(0, partition.state.waiting - 3))
    assert partition.state.waiting == 3
    partition.sources.set_budgets(None)
    world.offer(make_url(5000 + i) for i in range(5))
    world.step(partition, room=5)
    world.drain(partition, LIMITS.host_hot_max)


def test_extra_urls_get_the_room_that_they_are_given_and_others_all(directory: Path) -> None:
    """A farm's URLs beyond its budget fill a part of the room; of a page found meanwhile nothing is held back."""
    world, partition = PartitionWorld(), open_with(directory, SetBudgets(2))
    world.offer(make_url(i, f"h{i}.farm.example") for i in range(2000))
    while not partition.state.turns.front.has_only_extra:
        world.step(partition, room=3)
    before = len(world.admitted)
    world.step(partition, room=50, extra_room=0)
    assert len(world.admitted) == before
    world.offer(make_url(5000 + i, f"h{i}.good.example") for i in range(4))
    world.step(partition, room=50, extra_room=3)
    assert admitted_by_pld(world, before) == {"good.example": 2, "farm.example": 1}
    world.step(partition, room=50, extra_room=3)
    assert admitted_by_pld(world, before)["farm.example"] == 4
    partition.sources.set_withholds(lambda _: True)
    world.step(partition, room=50, extra_room=1)
    assert waiting_by_level(partition) == (0,) * 5, "what is blacklisted goes aside all the same"
    partition.sources.set_withholds(None)
    world.drain(partition, LIMITS.host_hot_max)


def test_a_step_without_room_for_extra_urls_uses_up_no_levels_turn(directory: Path) -> None:
    """Two levels of extra URLs wait: which one is next stays so, however many steps have room for none of them."""
    world, partition = PartitionWorld(), open_with(directory, SetBudgets(2))
    world.offer(make_url(i, f"h{i}.farm.example", priority=i % 2) for i in range(4000))
    while not partition.state.turns.front.has_only_extra or min(waiting_by_level(partition)[1:3]) < 3:
        world.step(partition, room=3)
    before = partition.state.turns.front.selector.credits
    for _ in range(2):
        world.offer([make_url(0, "h0.farm.example")])  # seen before: a step that is committed for it
        world.step(partition, room=50, extra_room=0)
        assert partition.state.turns.front.selector.credits == before
    world.step(partition, room=50, extra_room=1)
    assert partition.state.turns.front.selector.credits != before


@pytest.mark.parametrize("then", [None, SetBudgets(1), SetBudgets(1000)])
def test_order_survives_any_change_of_budgets(directory: Path, then: SetBudgets | None) -> None:
    """URLs of a host and level leave in order when budgets rise, fall, come and go while they wait."""
    world, partition = PartitionWorld(), open_with(directory, SetBudgets(3))
    for number in range(6):
        world.offer(make_url(1000 * number + i, f"h{i % 2}.a.example", i % 2) for i in range(60))
        world.offer(make_url(1000 * number + 500 + i, f"s{i}.example") for i in range(5))
        partition.sources.set_budgets((SetBudgets(3), None, then)[number % 3])
        world.step(partition, room=20)
        partition._check()
    world.drain(partition, LIMITS.host_hot_max)


@pytest.mark.parametrize("urls", [20_000])
def test_nobody_starves_beside_one_with_very_many_hosts(directory: Path, urls: int) -> None:
    """While one PLD fills the queues from thousands of hosts, another's URL is admitted a turn after it came."""
    world, partition = PartitionWorld(), open_with(directory, SetBudgets(10))
    late: dict[int, int] = {}
    for number in range(40):
        first = number * urls // 40
        world.offer(make_url(i, f"h{i // 4}.farm.example") for i in range(first, first + urls // 40))
        world.offer([make_url(10**6 + number, f"s{number}.example")])
        late[make_url(10**6 + number).key] = number
        world.step(partition, room=30)
        for url in world.admitted[-30:]:
            late.pop(url.key, None)
        assert all(number - came <= 2 for came in late.values())
    assert partition.state.waiting > urls // 2
    for number in range(40, 60):
        came = make_url(10**6 + number, f"s{number}.example")
        world.offer([came])
        before = len(world.admitted)
        for _ in range(12):
            world.step(partition, room=30)
        assert came in world.admitted[before : before + 300]
    partition._check()


@pytest.mark.long("ten thousand URLs of a farm; the order of smaller ones is asked here, too")
def test_who_was_over_budget_once_does_not_stand_behind_a_farm(directory: Path) -> None:
    """Ten pages of a farm bring hundreds more in each step: what another PLD has over budget passes all the same."""
    world, partition = PartitionWorld(), open_with(directory, SetBudgets(10))
    numbers = itertools.count()

    def farm_grows() -> None:
        world.offer(make_url(n, f"h{n}.farm.example") for n in itertools.islice(numbers, 300))
        world.step(partition, room=10)

    for _ in range(60):
        farm_grows()
    first = 10**7
    for _ in range(4):  # a site of 320 pages, discovered by and by
        world.offer(make_url(first + n, "www.site.example") for n in range(80))
        first += 80
        for _ in range(40):
            farm_grows()
    fetched = admitted_by_pld(world)["site.example"]
    assert fetched == 320, f"after {len(world.admitted)} pages in all"
    partition._check()


def test_the_window_and_the_quantum_make_a_large_backlog_cheap(directory: Path) -> None:
    """However many URLs one PLD has over budget, few are re-read for each page in the long run."""
    world, partition = PartitionWorld(), open_with(directory, SetBudgets(2))
    for number in range(10):
        world.offer(make_url(2000 * number + i, f"h{i}.farm.example") for i in range(2000))
        world.step(partition, room=0)
    while len(world.admitted) < 4_000:
        world.step(partition, room=500)
    before = partition.state.turns.state.reread_ever
    while len(world.admitted) < 14_000:
        world.step(partition, room=500)
    assert (partition.state.turns.state.reread_ever - before) / 10_000 < 12
    assert world.admitted == [make_url(n, f"h{n % 2000}.farm.example") for n in range(len(world.admitted))]


def test_a_reread_goes_on_at_the_pace_of_the_crawl(directory: Path) -> None:
    """While turns have URLs, a step re-reads some for each that it admits and two for each that came."""
    world, partition = PartitionWorld(), open_with(directory, SetBudgets(2))
    for number in range(10):
        world.offer(make_url(2000 * number + i, f"h{i}.farm.example") for i in range(2000))
    world.offer(make_url(10**6 + i, f"s{i}.example") for i in range(3000))
    world.step(partition, room=0)
    while partition.state.turns.state.turn < 4:
        world.step(partition, room=200)
    read = partition.state.turns.state.reread_ever
    partition.sources.set_budgets(SetBudgets(100))
    world.step(partition, room=5)
    assert read < partition.state.turns.state.reread_ever <= read + 5 * 16 + 64
    assert partition.state.turns.state.is_rereading
    read = partition.state.turns.state.reread_ever
    world.offer(make_url(2 * 10**6 + i, f"t{i}.example") for i in range(500))
    world.step(partition, room=5)
    assert read + 5 * 16 + 64 < partition.state.turns.state.reread_ever <= read + 5 * 16 + 500 * 2 + 128
    assert partition.state.turns.state.is_rereading
    starved = open_with(directory.with_name("p0008"), SetBudgets(0))
    starved.step([("1-0", encode_batch([make_url(i) for i in range(20_000)]))], 0, {})
    starved.step([], 1, {})
    assert 8192 <= starved.state.turns.state.reread_ever < 8192 + 64


class CountingReads(DiskFiles):
    """The real file system; counts the bytes of segments that are read."""

    def __init__(self) -> None:
        self.segment_bytes = 0

    def read(self, path: AnyPath, offset: int = 0, size: int | None = None) -> bytes:
        data = super().read(path, offset, size)
        if "queue-" in str(path) or "arrived-" in str(path) or "failed-" in str(path):
            self.segment_bytes += len(data)
        return data


def test_opening_reads_no_queue_and_a_step_little_of_one(directory: Path) -> None:
    """What waits is not touched when a partition is opened; a step reads some blocks, whatever waits."""
    world, partition = PartitionWorld(), open_with(directory, SetBudgets(5))
    world.offer(make_url(i, f"h{i % 50}.p{i % 70}.example") for i in range(20_000))
    world.step(partition, room=0)
    files = CountingReads()
    partition = Partition.open(directory, 2, LIMITS, files, budgets=SetBudgets(5), pld_of=pld_of, pld_key=pld_key)
    assert (partition.state.waiting, files.segment_bytes) == (20_000, 0)
    partition.step([], 10, {})
    assert 0 < files.segment_bytes < 40_000


def test_a_step_that_fails_changes_no_table_and_no_turn(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever operation fails, in-degrees, turns and totals are as before, and the step succeeds when repeated."""
    make_runs_early(monkeypatch, 10)
    for at in range(1, 30):
        files, world = FaultyFiles(), PartitionWorld()
        partition = Partition.open(
            directory / str(at), 1, LIMITS, files, budgets=SetBudgets(2), pld_of=pld_of, pld_key=pld_key
        )
        for number in range(3):
            links = make_edges((f"s{number}{i}.example", f"p{i}.example") for i in range(8))
            world.offer((make_url(100 * number + i, f"h.p{i % 9}.example", i % 2) for i in range(60)), links)
        world.step(partition, room=10, limit=2)
        files.fail(files.operations + at, Fault.DISK_FULL)
        plds = np.array([pld_key(f"p{i}.example") for i in range(9)], dtype=np.uint64)
        before = (
            repr(partition),
            partition.state.turns.state,
            partition.in_degrees(plds).tolist(),
            partition.state.in_degrees,
        )
        try:
            world.step(partition, room=10)
        except TransientStoreError:
            partition._check()
            after = (
                repr(partition),
                partition.state.turns.state,
                partition.in_degrees(plds).tolist(),
                partition.state.in_degrees,
            )
            assert after == before
        else:
            assert at >= 5
            break
        world.drain(partition, LIMITS.host_hot_max)
        assert partition.in_degrees(plds).tolist() == [3] * 8 + [0]
    else:
        pytest.fail("no step came to its end")


def test_damage_in_any_table_or_queue_is_found(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify` reads every run and every queue: one flipped byte in any of them is named."""
    make_runs_early(monkeypatch, 10)
    world, partition = PartitionWorld(), open_with(directory, SetBudgets(2))
    links = make_edges((f"s{i}.example", f"p{i % 20}.example") for i in range(40))
    world.offer((make_url(i, f"h.p{i % 20}.example") for i in range(400)), links)
    world.step(partition, room=10)
    kinds = set()
    for name, length in partition.committed.manifest.files_needed().items():
        kinds.add(name.partition("-")[0])
        path = directory / "e1" / name
        sound = path.read_bytes()
        for place in (9, length // 2, length - 1):
            path.write_bytes(sound[:place] + bytes([sound[place] ^ 4]) + sound[place + 1 :])
            assert [problem.path for problem in verify_newest(directory)] == [str(path)], (name, place)
        path.write_bytes(sound)
    assert kinds == {"run", "edge", "pld", "host", "queue", "arrived"}
    assert verify_newest(directory) == []
    (directory / "e1" / "arrived-1-0").unlink()
    with pytest.raises(CorruptionError, match="arrived-1-0"):
        open_with(directory, SetBudgets(2), 2)


arrivals = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.sampled_from((0, 5))), max_size=12)


@given(st.lists(st.tuples(arrivals, st.integers(0, 9)), max_size=12), st.integers(1, 4))
def test_urls_of_two_hosts_keep_their_order_unless_one_is_backed_up(
    tmp_path_factory: pytest.TempPathFactory, batches: list[tuple[list[tuple[int, int, int]], int]], budget: int
) -> None:
    """PolyBot's order: of one level, a URL is passed only by one of another PLD, and only if its own was over budget.

    Source: PolyBot §3.5. A PLD that has had no more than its budget when its URL arrives is not backed up.
    """
    partition = open_with(tmp_path_factory.mktemp("order") / "p", SetBudgets(budget))
    world, number = PartitionWorld(), 0
    arrived: list[QueuedUrl] = []
    offered: Counter[str] = Counter()
    backed_up: set[bytes] = set()
    for batch, room in batches:
        urls = []
        for pld, host, priority in batch:
            number += 1
            urls.append(make_url(number, f"h{host}.p{pld}.example", priority))
            offered[f"p{pld}.example"] += 1
            if offered[f"p{pld}.example"] > budget:
                backed_up.add(urls[-1].body)
        arrived += urls
        world.offer(urls)
        world.step(partition, room)
    world.drain(partition, LIMITS.host_hot_max)
    place = {url.body: at for at, url in enumerate(world.admitted)}
    by_level: dict[int, list[QueuedUrl]] = defaultdict(list)
    for url in arrived:
        by_level[url.priority].append(url)
    for urls in by_level.values():
        for at, first in enumerate(urls):
            for second in urls[at + 1 :]:
                if place[second.body] < place[first.body]:
                    assert pld_of(first.host) != pld_of(second.host)
                    assert first.body in backed_up
