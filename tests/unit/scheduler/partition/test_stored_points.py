"""Durable points in a store: whatever call fails, and whoever takes over from whichever disk, nothing is lost.

The store is a directory, the partitions are real, and Redis is a model of what the scripts promise (`PartitionWorld`).
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.config import read_config
from bigcrawl.drum.files import DiskFiles
from bigcrawl.exceptions import TransientStoreError
from bigcrawl.features.copies.fold import Copies
from bigcrawl.features.copies.rows import pack_seen
from bigcrawl.scheduler.crawl.missing import LostFilesError
from bigcrawl.scheduler.owner.claiming.opening import is_older
from bigcrawl.scheduler.owner.node_store import NodeStore
from bigcrawl.scheduler.partition.committed import newest_manifest
from bigcrawl.scheduler.partition.directory import last_epoch
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.partition.stored_points import (
    AHEAD_URLS_MAX,
    AHEAD_URLS_SOON,
    SOON_MS,
    StoredPoints,
)
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.queued_url import encode_batch
from bigcrawl.store import series as series_module
from tests.support.disks.changing_store import CHANGES, RIGHT, ChangingStore
from tests.support.disks.faulty_objects import FAULTS, FaultyObjects, Killed
from tests.support.observed_rows import pack_each
from tests.support.worlds.partition_world import PartitionWorld, make_runs_early, make_url

if TYPE_CHECKING:
    from pathlib import Path

HOST_HOT = 4
LIMITS = PartitionLimits(HOST_HOT, features=(Copies(),))
KILLS = ("killed before", "killed after")
NAMED = read_config({"BIGCRAWL_CRAWL": "crawl"})
nobody: Any = None  # in place of parts that are not asked here


class Owner:
    """One owner of the partition, on one machine."""

    def __init__(self, life: Life, machine: str, epoch: int) -> None:
        self.life = life
        directory = life.place / machine / "p0000"
        series = life.node_store()._fetch_newer(0, directory)
        newest = newest_manifest(directory, DiskFiles())
        if newest is not None and is_older(newest, life.trimmed):
            raise LostFilesError("as `Opener` raises it")
        self.disk = Partition.open(directory, epoch, LIMITS)
        self.points = StoredPoints(self.disk, series, 0)
        self.put()

    def put(self) -> None:
        """One point, as `NodeStore` makes it."""
        copy = self.points.begin(0)
        try:
            self.points.put(copy)
            self.points.record_put(copy)
        finally:
            self.points.end()

    def store(self) -> None:
        """One point, and what follows it if Redis accepts the trim."""
        self.put()
        if self.life.owner is self:
            self.life.trim(self.points.trim)
            self.points.clear()

    def force(self) -> None:
        """Local files that are not needed go; the batches are forgotten as far as the store has them."""
        self.disk.committed.forget_text(self.points.trim[1])
        self.disk.committed.forget_batches(max(0, self.points.trim[1] - 3))
        self.disk.committed.make_durable()


class Life:
    """The partition through the hands of several owners."""

    def __init__(self, place: Path, objects: FaultyObjects | None = None) -> None:
        self.place = place
        self.world = PartitionWorld()
        self.objects = objects or FaultyObjects(f"file://{place}/store")
        self.trimmed = ""
        self.epoch = 0
        self.urls = 0
        self.kept = 0  # batches that Redis cannot forget any more
        self.owner: Owner | None = None

    def node_store(self) -> NodeStore:
        crawl: Any = SimpleNamespace(objects=self.objects, config=NAMED, client=None, clock=None)
        thread: Any = SimpleNamespace(files=DiskFiles())
        return NodeStore(crawl.objects, crawl, thread, nobody)

    def claim(self, machine: str) -> Owner:
        """A claim, and all that happens before anything is admitted."""
        self.owner = None
        epochs = self.node_store()._series_of(0).last_epoch()
        self.epoch = max(self.epoch, epochs, last_epoch(self.place / machine / "p0000")) + 1
        owner = Owner(self, machine, self.epoch)
        if (
            owner.disk.manifest.batch_number < self.world.batch_number
        ):  # the last owner is dead for longer than Redis may lose
            self.kept = self.world.batch_number
        self.world.bring_up(owner.disk)
        self.owner = owner
        return owner

    def claim_again(self, machine: str) -> Owner:
        """Claim until it succeeds, as a node does."""
        self.objects.fault_in = -1
        return self.claim(machine)

    def trim(self, upto: tuple[str, int]) -> None:
        last = int(upto[0].partition("-")[2])
        self.world.inbox = [entry for entry in self.world.inbox if int(entry[0].partition("-")[2]) > last]
        self.kept = max(self.kept, upto[1])
        if upto[0] != NO_INBOX_ID:
            self.trimmed = f"{upto[0]} {upto[1]}"

    def offer(self, urls: int = 20) -> None:
        """New URLs, and some that are known."""
        numbers = [max(0, self.urls - 5), *range(self.urls, self.urls + urls)]
        self.world.offer([make_url(n, f"h{n % 5}.example") for n in numbers])
        self.urls += urls

    def work(self, owner: Owner, steps: int = 3) -> None:
        for _ in range(steps):
            self.offer()
            self.world.fetch(2)
            self.world.step(owner.disk, room=12)

    def rewind(self, batches: int) -> None:
        """Redis forgets the last batches, as far as it can."""
        world = self.world
        for _ in range(batches):
            if world.batch_number > self.kept:
                gone = world.batches.pop(world.batch_number)
                del world.admitted[gone.first_seq :]
        world.hot = Counter({host: min(n, HOST_HOT) for host, n in world.hot.items()})


@pytest.fixture(autouse=True)
def _runs_early(monkeypatch: pytest.MonkeyPatch) -> None:
    make_runs_early(monkeypatch, 16)


@pytest.mark.parametrize("machine", ["first", "empty", "old"])
@pytest.mark.parametrize("fault", [*FAULTS, *KILLS])
def test_a_fault_at_any_write_loses_nothing(tmp_path: Path, fault: str, machine: str) -> None:
    """A write or delete is refused, its reply lost, late, or the process killed there; any machine takes over."""
    for at in range(5):
        life = Life(tmp_path / str(at))
        life.work(life.claim_again("old"))
        assert life.owner is not None
        life.owner.store()
        owner = life.claim_again("first")
        life.work(owner)
        owner.store()
        life.work(owner)
        owner.force()
        life.objects.fault, life.objects.fault_in = fault, at
        try:
            for _ in range(3):
                owner.store()
                life.work(owner)
        except TransientStoreError:
            life.work(owner)  # local steps go on
            if at % 2:
                owner.store()  # the next point succeeds
        except Killed:
            pass
        successor = life.claim_again(machine)
        life.objects.deliver()
        life.work(successor)
        successor.store()
        life.world.drain(life.claim_again("third").disk, HOST_HOT)


def test_a_zombie_that_goes_on_writing_and_deleting_harms_nobody(tmp_path: Path) -> None:
    """Its late points and deletes are of an old epoch: the third owner starts from the second one's."""
    life = Life(tmp_path)
    zombie = life.claim_again("zombie")
    life.work(zombie)
    zombie.store()
    life.objects.fault, life.objects.fault_in = "late", 1  # the point succeeds, and the first delete is late
    life.work(zombie)
    with pytest.raises(TransientStoreError):
        zombie.store()
    second = life.claim_again("second")
    for _ in range(3):
        life.offer()
        zombie.disk.step(life.world.unread(zombie.disk), 30, {})  # chosen, and refused by Redis
        zombie.store()  # refused by Redis too: nothing is trimmed or deleted
    life.objects.deliver()
    third = life.claim_again("third")
    assert third.disk.manifest.batch_number == life.world.batch_number
    zombie.store()
    life.work(third)
    assert second.disk.manifest.epoch < third.disk.manifest.epoch
    life.world.drain(life.claim_again("fourth").disk, HOST_HOT)


def test_a_copy_that_is_newer_than_the_store_is_gone_on_with(tmp_path: Path) -> None:
    """The owner itself comes back, with steps that the store does not have; nothing is fetched from the store."""
    life = Life(tmp_path)
    owner = life.claim_again("first")
    life.work(owner)
    number = owner.disk.manifest.number
    again = life.claim_again("first")
    assert again.disk.manifest.number > number
    assert again.disk.manifest.batch_number == life.world.batch_number
    life.world.drain(again.disk, HOST_HOT)


def test_a_damaged_local_copy_is_replaced_once_it_is_removed(tmp_path: Path) -> None:
    """The remedy for damage: remove the partition's directory, and the store's last point takes its place."""
    life = Life(tmp_path)
    owner = life.claim_again("first")
    life.work(owner)
    owner.store()
    life.work(owner)
    shutil.rmtree(tmp_path / "first")
    life.world.drain(life.claim_again("first").disk, HOST_HOT)


@pytest.mark.parametrize("seed", range(12))
def test_any_order_of_faults_takeovers_and_rewinds_loses_nothing(tmp_path: Path, seed: int) -> None:
    """Random lives: every URL is admitted once, by batches without gaps, and in order within its host."""
    choice = random.Random(seed)
    life = Life(tmp_path)
    life.claim_again("m0")
    for _ in range(40):
        life.objects.fault = choice.choice([*FAULTS, *KILLS])
        life.objects.fault_in = choice.choice([-1, -1, 0, 1, 2])
        try:
            owner = life.owner or life.claim(f"m{choice.randrange(4)}")
            act = choice.random()
            if act < 0.45:
                life.work(owner, 1)
            elif act < 0.75:
                owner.store()
            elif act < 0.85:
                owner.force()
            elif act < 0.9:
                life.objects.deliver()
            else:
                life.rewind(choice.randrange(3))
                life.claim(f"m{choice.randrange(4)}")
        except TransientStoreError:
            pass
        except Killed:
            life.owner = None
    life.world.drain(life.claim_again("last").disk, HOST_HOT)


def lives_through(place: Path, changes: dict[int, str]) -> int:
    """A crawl whose store changes before the calls of these numbers, and whose machine is lost at last. Returns calls.

    The next machine is refused, or has all. If it is refused, it has all once the right store is back, or the copy on
    which the first machine went on.
    """
    place.mkdir()
    store = ChangingStore(place, "crawl/store-1")
    life = Life(place, store)
    owner, said = life.claim_again("first"), list[str]()
    for at in range(6):
        if at == 1:
            store.keep_copy()
            store.changes = {store.calls + number: named for number, named in changes.items()}
        life.work(owner, 1)
        try:
            owner.store()
        except TransientStoreError as error:
            said.append(str(error))
        owner.force()
    for each in said:
        assert f"file://{place}/store" in each, "which store"
        assert "bring" in each or "restore" in each, "what to do"
    store.changes, calls = {}, store.calls
    accepted = 0
    for number, named in enumerate((store.named, RIGHT, "old")):
        if named != store.named:
            store.change(named)
        try:
            successor = life.claim_again(f"lost-{number}")
        except (TransientStoreError, LostFilesError):
            continue
        accepted += 1
        life.world.drain(successor.disk, HOST_HOT)
        break
    assert accepted == 1
    for wrong in ("unmounted", "another", "empty"):
        there = place / ("store" if store.named == wrong else wrong)
        assert not list(there.rglob("*.point")), "nothing is made where the store is not"
    return calls


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("ends", [1, 2, 5, None])
def test_a_store_that_becomes_another_at_any_call_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, ends: int | None
) -> None:
    """It is unmounted, another, empty or an older copy before each call in turn, and the right one some calls later."""
    monkeypatch.setattr(series_module, "SMALL_BYTES", 400)  # points have objects besides their own
    calls = lives_through(tmp_path / "unchanged", {})
    assert calls > 30
    for at in range(calls):
        changes = {at: change} | ({at + ends: RIGHT} if ends is not None else {})
        lives_through(tmp_path / str(at), changes)


@pytest.mark.parametrize("seed", range(6))
def test_a_store_that_changes_again_and_again_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """It is any of these for any number of calls."""
    monkeypatch.setattr(series_module, "SMALL_BYTES", 400)
    choice = random.Random(seed)
    for number in range(10):
        changes, named, at = {}, RIGHT, 0
        while at < 60:
            at += choice.randrange(1, 9)
            named = choice.choice([each for each in (RIGHT, RIGHT, *CHANGES) if each != named])
            changes[at] = named
        lives_through(tmp_path / str(number), changes)


def test_a_point_is_due_in_time_and_sooner_when_much_was_folded(tmp_path: Path) -> None:
    """Without changes none is due; when the store is far behind, the inbox must wait."""
    life = Life(tmp_path)
    owner = life.claim_again("first")
    points, disk = owner.points, owner.disk
    assert not points.is_due(1 << 40, 60_000)
    life.work(owner, 1)
    assert not points.is_due(59_999, 60_000)
    assert points.is_due(60_000, 60_000)
    urls = [make_url(n, "big.example") for n in range(AHEAD_URLS_SOON)]
    disk.step([("1800000000000-0", encode_batch(urls))], 0, {})
    assert not points.is_due(SOON_MS - 1, 60_000)
    assert points.is_due(SOON_MS, 60_000)
    for at in range(AHEAD_URLS_MAX // AHEAD_URLS_SOON):
        disk.step([(f"1800000000001-{at}", encode_batch(urls))], 0, {})
    assert points.is_far_behind, "the inbox waits"
    owner.put()
    assert not owner.points.is_far_behind, "and goes on"
    rows = pack_each(pack_seen(1, 2) * AHEAD_URLS_MAX)
    disk.step([InboxEntry("1800000000002-0", observed=rows)], 0, {})
    assert owner.points._entries_ahead >= AHEAD_URLS_MAX, "rows about contents fill Redis as URLs do"
    owner.put()
    assert owner.points._entries_ahead == 0
