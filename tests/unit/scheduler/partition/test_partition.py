from __future__ import annotations

import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.drum.files import DiskFiles
from bigcrawl.exceptions import CorruptionError, OwnershipLostError, TransientStoreError
from bigcrawl.scheduler.partition.directory import last_epoch, verify_newest
from bigcrawl.scheduler.partition.partition import ADMIT_URLS_MAX, Partition, PartitionLimits, Step
from bigcrawl.scheduler.queues.epoch_directory import list_committed
from bigcrawl.scheduler.records.queued_url import UNCHECKED, encode_batch
from tests.support.disks.faulty_files import Fault, FaultyFiles
from tests.support.worlds.partition_world import PartitionWorld, make_url

if TYPE_CHECKING:
    from bigcrawl.drum.files import AnyPath

LIMITS = PartitionLimits(host_hot_max=8)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state" / "p0007"


def test_new_urls_are_admitted_and_duplicates_are_not(directory: Path) -> None:
    """A URL is new once, whichever entry or step brings it."""
    partition = Partition.open(directory, 1, LIMITS)
    first, second = make_url(1), make_url(2)
    step = partition.step([("1-0", encode_batch([first, second])), ("1-1", encode_batch([first]))], 10, {})
    assert (step.new, step.duplicates, step.rejected) == (2, 1, 0)
    assert step.batch == (1, 0, [first, second])
    step = partition.step([("2-0", encode_batch([second]))], 10, {})
    assert step == Step(None, 0, 1, 0)
    figures = (
        len(partition.state.tables.seen),
        partition.manifest.duplicates,
        partition.manifest.folded_urls,
        partition.state.waiting,
    )
    assert figures == (2, 2, 4, 0)
    assert (partition.manifest.inbox_id, partition.manifest.batch_number, partition.manifest.admitted) == ("2-0", 1, 2)


def test_an_unchecked_url_is_queued_each_time(directory: Path) -> None:
    """The seen check neither refuses an unchecked URL nor remembers it."""
    partition = Partition.open(directory, 1, LIMITS)
    url = make_url(1, flags=UNCHECKED)
    for number in range(1, 4):
        step = partition.step([(f"{number}-0", encode_batch([url]))], 10, {})
        assert step.batch == (number, number - 1, [url])
    assert len(partition.state.tables.seen) == 0


def test_an_entry_that_was_folded_is_skipped(directory: Path) -> None:
    """Entries up to the last folded one change nothing, and ids are compared as numbers."""
    partition = Partition.open(directory, 1, LIMITS)
    url = make_url(1, flags=UNCHECKED)
    entries = [(entry_id, encode_batch([url])) for entry_id in ("9-9", "9-10", "10-0")]
    assert partition.step(entries[:2], 10, {}).new == 2
    assert partition.step(entries, 10, {}).new == 1
    number = partition.manifest.number
    assert partition.step(entries, 10, {}) == Step(None, 0, 0, 0)
    assert partition.manifest.number == number, "a step with nothing to do commits nothing"


def test_a_batch_that_cannot_be_decoded_is_set_aside(directory: Path) -> None:
    """Rubbish is kept under its id, counted, and stops nothing."""
    partition = Partition.open(directory, 1, LIMITS)
    step = partition.step([("1-0", b"\x07rubbish"), ("1-1", encode_batch([make_url(1)])), ("1-2", b"")], 10, {})
    assert (step.new, step.rejected, partition.manifest.rejected) == (1, 2, 2)
    assert (directory / "rejected" / "1-0").read_bytes() == b"\x07rubbish"
    assert partition.manifest.inbox_id == "1-2"


def test_room_bounds_what_is_admitted(directory: Path) -> None:
    """No more than `room` URLs are admitted, none when it is 0, and the rest waits."""
    partition = Partition.open(directory, 1, LIMITS)
    batch = encode_batch([make_url(i, f"h{i}.example") for i in range(30)])
    assert partition.step([("1-0", batch)], 0, {}).batch is None
    assert partition.state.waiting == 30
    step = partition.step([], 12, {})
    assert step.batch
    assert [url.host for url in step.batch.urls] == [f"h{i}.example" for i in range(12)]
    assert partition.state.waiting == 18


def test_bytes_bound_what_is_admitted(directory: Path) -> None:
    """A batch is one message to Redis: of large requests it has fewer, and the rest follows in the next ones."""
    partition = Partition.open(directory, 1, LIMITS)
    batch = encode_batch([make_url(i, f"h{i}.example")._replace(body=bytes(6 << 20)) for i in range(8)])
    step = partition.step([("1-0", batch)], 100, {})
    assert step.batch
    assert len(step.batch.urls) == 3
    assert partition.state.waiting == 5
    step = partition.step([], 100, {})
    assert step.batch
    assert len(step.batch.urls) == 3


def test_hosts_over_their_room_are_parked(directory: Path) -> None:
    """A host gets up to its maximum, what is hot already counted; the others pass it."""
    partition = Partition.open(directory, 1, LIMITS)
    urls = [make_url(i, "big.example") for i in range(20)] + [make_url(99, "small.example")]
    step = partition.step([("1-0", encode_batch(urls))], 100, {"big.example": 5})
    assert step.batch
    assert step.batch.urls == [urls[-1], *urls[:3]]
    assert (len(partition.state.parked), partition.state.parked.host_count) == (17, 1)
    assert partition.step([], 100, {"big.example": 8}).batch is None
    step = partition.step([("2-0", encode_batch([make_url(50, "big.example")]))], 100, {"big.example": 6})
    assert step.batch
    assert step.batch.urls == urls[3:5]


def test_urls_of_a_host_keep_their_order_through_parking(directory: Path) -> None:
    """Parked or not, before and after takeovers, a host's URLs of one level leave in order of arrival."""
    world = PartitionWorld()
    partition = Partition.open(directory, 1, LIMITS)
    for number in range(12):
        world.offer(make_url(100 * number + i, f"h{i % 3}.example", i % 2) for i in range(60))
        world.fetch(3)
        world.step(partition, room=20)
        if number % 4 == 3:
            partition = Partition.open(directory, number, LIMITS)
            world.bring_up(partition)
        partition._check()
    assert len(partition.state.parked) > 0
    world.drain(partition, LIMITS.host_hot_max)


def test_higher_priorities_of_a_parked_host_go_first(directory: Path) -> None:
    """Among a host's parked URLs, the highest level has precedence."""
    partition = Partition.open(directory, 1, LIMITS)
    urls = [make_url(i, priority=priority) for i, priority in enumerate([0] * 20 + [100])]
    assert partition.step([("1-0", encode_batch(urls))], 100, {"a.example": 8}).batch is None
    step = partition.step([], 2, {})
    assert step.batch
    assert step.batch.urls == [urls[20], urls[0]]


def test_large_hosts_do_not_keep_small_ones_waiting(directory: Path) -> None:
    """Eight hosts with long chains keep busy, and the rest of the hot set goes to hosts behind them."""
    world = PartitionWorld()
    partition = Partition.open(directory, 1, LIMITS)
    world.offer(make_url(i, f"big{i % 8}.example") for i in range(800))
    world.offer(make_url(1000 + i, f"small{i}.example") for i in range(100))
    for _ in range(40):
        world.fetch(1)
        world.step(partition, room=64 - world.hot.total())
        hot_big = [world.hot[f"big{i}.example"] for i in range(8)]
        assert min(hot_big) >= 1, "a host with parked URLs is never idle"
    assert sum(url.host.startswith("small") for url in world.admitted) == 100


class CountingFiles(DiskFiles):
    """Counts the bytes appended to queues, and all calls."""

    def __init__(self) -> None:
        self.appended_bytes = 0
        self.calls: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> Any:
        if hasattr(DiskFiles, name):
            self.calls[name] += 1
        return super().__getattribute__(name)

    def write_at(self, path: AnyPath, offset: int, data: bytes, *, create: bool = True) -> None:
        if Path(path).name != "MANIFEST":
            self.appended_bytes += len(data)
        super().write_at(path, offset, data, create=create)


def test_a_url_behind_a_full_host_is_rewritten_a_few_times_at_most(directory: Path) -> None:
    """One host's thousands of URLs cost a bounded number of writes each, however many steps they wait."""
    files = CountingFiles()
    partition = Partition.open(directory, 1, PartitionLimits(host_hot_max=64), files)
    world = PartitionWorld()
    world.offer(make_url(i) for i in range(4000))
    world.step(partition, room=0)
    once = files.appended_bytes
    while partition.state.waiting:
        world.fetch(40)
        world.step(partition, room=1000)
    world.check_complete()
    # The front queue, the chain, and joining 64, 256 and 1,024 at a time.
    assert files.appended_bytes < 5 * once


def test_a_full_host_costs_nothing_while_it_is_full(directory: Path) -> None:
    """With every URL parked behind full hosts, steps commit nothing."""
    partition = Partition.open(directory, 1, LIMITS)
    full = {"a.example": 8}
    partition.step([("1-0", encode_batch([make_url(i) for i in range(150)]))], 1000, full)
    for _ in range(5):
        partition.step([], 1000, full)
    assert len(partition.state.parked) == 150
    number = partition.manifest.number
    partition.step([], 1000, full)
    assert partition.manifest.number == number


def test_parked_hosts_are_bounded(directory: Path) -> None:
    """Beyond the bound a front queue waits; nothing is lost, and all goes on when hosts have room."""
    limits = PartitionLimits(host_hot_max=1, parked_hosts_max=5)
    partition = Partition.open(directory, 1, limits)
    world = PartitionWorld()
    for number in range(3):
        world.offer(make_url(100 * number + i, f"h{i}.example") for i in range(40))
    while world.unread(partition) or partition.state.waiting:
        world.step(partition, room=100)
        assert partition.state.parked.host_count <= 5
        world.fetch(1)
    world.check_complete()


def test_at_the_bound_a_parked_host_is_not_overtaken(directory: Path) -> None:
    """With no more chains to be had, a new URL of a parked host still goes behind its parked ones."""
    partition = Partition.open(directory, 1, PartitionLimits(host_hot_max=8, parked_hosts_max=1))
    urls = [make_url(i) for i in range(6)]
    partition.step([("1-0", encode_batch(urls[:5]))], 10, {"a.example": 8})
    step = partition.step([("2-0", encode_batch(urls[5:]))], 10, {"a.example": 5})
    assert step.batch
    assert step.batch.urls == urls[:3]


# Epochs.


def test_a_partition_exists_once_it_has_a_manifest(directory: Path) -> None:
    """A leftover directory is not a partition; an opened one is, and says its epoch."""
    assert not list_committed(directory, DiskFiles())
    assert last_epoch(directory) == 0
    (directory / "e1").mkdir(parents=True)
    (directory / "e1" / "run-1").write_bytes(b"left by a crash")
    assert not list_committed(directory, DiskFiles())
    Partition.open(directory, 2, LIMITS)
    assert list_committed(directory, DiskFiles())
    assert last_epoch(directory) == 2


def test_an_epoch_is_used_once(directory: Path) -> None:
    """The same epoch, or an earlier one, cannot be opened again: it is somebody else's."""
    Partition.open(directory, 5, LIMITS)
    for epoch in (4, 5):
        with pytest.raises(OwnershipLostError, match="epoch"):
            Partition.open(directory, epoch, LIMITS)


def test_a_fenced_owner_cannot_touch_its_successor(directory: Path) -> None:
    """What the old owner commits after the takeover changes nothing that the new owner reads."""
    old, world = Partition.open(directory, 1, LIMITS), PartitionWorld()
    world.offer(make_url(i, f"h{i % 9}.example") for i in range(300))
    world.step(old, room=20)
    new = Partition.open(directory, 2, LIMITS)
    for number in range(5):
        batch = encode_batch([make_url(5000 + 10 * number + i, "old.example") for i in range(10)])
        old.step([(f"1900000000000-{number}", batch)], 5, {})
    old.committed.forget_batches(3)
    old.committed.make_durable()
    new._check()
    assert verify_newest(directory) == []
    assert new.manifest.number == 3
    world.drain(new, LIMITS.host_hot_max)


def test_a_durable_successor_ends_a_fenced_owner(directory: Path) -> None:
    """Once the new owner is durable the old directory is gone, and the old owner's steps fail cleanly."""
    old = Partition.open(directory, 1, LIMITS)
    new = Partition.open(directory, 2, LIMITS)
    new.committed.make_durable()
    assert sorted(path.name for path in directory.iterdir()) == ["e2"]
    with pytest.raises(TransientStoreError):
        old.step([("1-0", encode_batch([make_url(1)]))], 5, {})
    with pytest.raises(OwnershipLostError):
        Partition.open(directory, 1, LIMITS)


def test_a_fenced_owner_does_not_bring_its_manifest_back(directory: Path) -> None:
    """Where a successor has begun to remove an epoch, a step of the old owner fails and leaves no manifest."""
    old = Partition.open(directory, 1, LIMITS)
    (directory / "e1" / "MANIFEST").unlink()
    for number in range(2):
        with pytest.raises(TransientStoreError):
            old.step([(f"1-{number}", encode_batch([make_url(1)]))], 5, {})
    assert not list_committed(directory, DiskFiles())


def test_a_half_finished_takeover_is_ignored_and_removed(directory: Path) -> None:
    """A directory without a manifest is no epoch; the next owner's durable point removes it."""
    world, partition = PartitionWorld(), Partition.open(directory, 1, LIMITS)
    world.offer(make_url(i) for i in range(30))
    world.step(partition, room=5)
    (directory / "e2").mkdir()
    (directory / "e2" / "queue-0-1-0").write_bytes(b"half a takeover")
    partition = Partition.open(directory, 3, LIMITS)
    partition.committed.make_durable()
    assert sorted(path.name for path in directory.iterdir()) == ["e3"]
    world.bring_up(partition)
    world.drain(partition, LIMITS.host_hot_max)


def test_an_opening_that_failed_may_be_repeated(directory: Path) -> None:
    """A full disk while taking over leaves the epoch unused."""
    world, partition = PartitionWorld(), Partition.open(directory, 1, LIMITS)
    world.offer(make_url(i) for i in range(30))
    world.step(partition, room=5)
    for at in range(1, 5):  # make the directory, link parked URLs, write the manifest, rename it
        with pytest.raises(TransientStoreError):
            Partition.open(directory, 2, LIMITS, FaultyFiles(at, Fault.DISK_FULL))
    partition = Partition.open(directory, 2, LIMITS)
    world.bring_up(partition)
    world.drain(partition, LIMITS.host_hot_max)


# Damage.


def test_a_damaged_manifest_is_never_a_fresh_start(directory: Path) -> None:
    """Not even when an older epoch has a sound one: the error names file and offset."""
    Partition.open(directory, 1, LIMITS)
    Partition.open(directory, 2, LIMITS)
    manifest = directory / "e2" / "MANIFEST"
    manifest.write_bytes(manifest.read_bytes()[:-1])
    assert list_committed(directory, DiskFiles())
    with pytest.raises(CorruptionError) as caught:
        Partition.open(directory, 3, LIMITS)
    assert caught.value.path == str(manifest)
    assert [problem.path for problem in verify_newest(directory)] == [str(manifest)]


def test_a_half_written_record_is_passed_over(directory: Path) -> None:
    """However much of its last record a manifest lacks, it is the manifest before that step."""
    partition, world = Partition.open(directory, 1, LIMITS), PartitionWorld()
    path = directory / "e1" / "MANIFEST"
    for start in (0, 100):
        committed, size = partition.manifest.number, path.stat().st_size
        world.offer(make_url(start + i, f"h{i}.example") for i in range(9))
        partition.step(world.unread(partition), 5, {})
    data = path.read_bytes()
    for end in (size + 1, size + 15, size + 16, size + 40, len(data) - 1):
        path.write_bytes(data[:end])
        assert verify_newest(directory) == []
        successor = Partition.open(directory, 2, LIMITS)
        assert (successor.manifest.number, successor.manifest.batch_number) == (committed + 1, 1)
        shutil.rmtree(directory / "e2")


@pytest.fixture
def many_files(directory: Path) -> Path:
    """The directory of an epoch with a file of each kind, and an admit batch."""
    partition = Partition.open(directory, 1, LIMITS)
    urls = [make_url(i) for i in range(200)]
    partition.step([("1-0", encode_batch(urls))], 10, {})
    partition.step([("2-0", encode_batch([make_url(1000 + i, "b.example") for i in range(5000)]))], 10, {})
    return directory / "e1"


@pytest.mark.parametrize("name", ["queue-0-1-0", "park-0", "run-1"])
@pytest.mark.parametrize("damage", ["missing", "empty"])
def test_a_lost_or_cut_file_is_damage(many_files: Path, name: str, damage: str) -> None:
    """A partition does not open without a file, or a committed byte, that its manifest names."""
    path = many_files / name
    assert path.exists()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(b"")
    with pytest.raises(CorruptionError) as caught:
        Partition.open(many_files.parent, 2, LIMITS)
    assert caught.value.path == str(path)
    assert [problem.path for problem in verify_newest(many_files.parent)] == [str(path)]


@pytest.mark.parametrize("name", ["queue-0-1-0", "park-0", "run-1", "MANIFEST"])
def test_verify_finds_a_flipped_bit_in_any_file(many_files: Path, name: str) -> None:
    """Every file that the manifest names is read whole, and the manifest with its batches."""
    assert verify_newest(many_files.parent) == []
    path = many_files / name
    sound = path.read_bytes()
    reserved = range(44, 48) if name.startswith("run") else ()  # of a run's header, read by nobody
    for place in {*range(0, len(sound), 1 + len(sound) // 60), *range(60), len(sound) - 5} - {*reserved}:
        data = bytearray(sound)
        data[place] ^= 1
        path.write_bytes(data)
        assert [problem.path for problem in verify_newest(many_files.parent)] == [str(path)], place


@pytest.mark.parametrize("lost", ["length", "bytes"])
def test_after_a_power_cut_the_durable_manifest_is_fallen_back_to(directory: Path, lost: str) -> None:
    """A newest manifest that names lost bytes is passed over when asked for, and Redis folded in."""
    world, partition = PartitionWorld(), Partition.open(directory, 1, LIMITS)
    path = directory / "e1" / "park-0"
    world.offer(make_url(i, f"h{i % 6}.example") for i in range(100))
    world.step(partition, room=10)
    partition.committed.make_durable()
    world.trim(partition)
    durable = path.read_bytes()
    world.offer(make_url(1000 + i, f"h{i % 7}.example") for i in range(100))
    world.step(partition, room=10)
    path.write_bytes(durable + (b"" if lost == "length" else bytes(path.stat().st_size - len(durable))))
    assert [problem.path for problem in verify_newest(directory)] == [str(path)]
    if lost == "length":
        with pytest.raises(CorruptionError):
            Partition.open(directory, 2, LIMITS)
    partition = Partition.open(directory, 2, LIMITS, fall_back=True)
    assert partition.manifest.batch_number == 1
    world.bring_up(partition)
    assert partition.manifest.batch_number == 2
    world.drain(partition, LIMITS.host_hot_max)


# Batches.


def test_committed_batches_are_offered_until_forgotten(directory: Path) -> None:
    """A batch that Redis does not know is yielded as it was, across epochs; of a forgotten one nothing is left."""
    partition = Partition.open(directory, 1, LIMITS)
    batches = []
    for number in range(1, 6):
        entry = (f"{number}-0", encode_batch([make_url(number, f"h{number}.example")]))
        batches.append(partition.step([entry], 5, {}).batch)
    partition.committed.forget_batches(2)
    assert list(partition.committed.batches(0)) == batches, "forgotten only by the next manifest"
    partition.step([("6-0", encode_batch([make_url(6)]))], 0, {})
    partition = Partition.open(directory, 2, LIMITS)
    assert list(partition.committed.batches(2)) == batches[2:]
    assert list(partition.committed.batches(5)) == []
    assert list(partition.committed.batches(1)) == [(2, 0, []), *batches[2:]]


def test_old_batches_are_kept_by_their_keys(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log that is begun anew has the keys of those whose text is not needed any more; the others are whole."""
    monkeypatch.setattr("bigcrawl.scheduler.partition.manifest_log.LOG_BYTES_MAX", 0)
    partition = Partition.open(directory, 1, LIMITS)
    batches = []
    for number in range(1, 6):
        entry = (f"{number}-0", encode_batch([make_url(100 * number + i, f"h{i}.example") for i in range(50)]))
        batches.append(partition.step([entry], 50, {}).batch)
    for upto in (2, 3):
        partition.committed.forget_text(upto)
        partition.committed._log._first_bytes = 0  # it has grown
        partition.step([(f"{upto}0-0", encode_batch([make_url(upto)]))], 0, {})
        partition.committed.make_durable()
        kept = list(partition.committed.batches(0))
        assert [batch.has_text for batch in kept] == [False] * upto + [True] * (5 - upto)
        assert kept[upto:] == batches[upto:]
        for old, batch in zip(batches[:upto], kept, strict=False):
            assert old is not None
            assert batch == old.without_text()
            assert [url.key for url in batch.urls] == [url.key for url in old.urls]
        partition._check()
    assert list(Partition.open(directory, 2, LIMITS).committed.batches(0)) == kept


def test_batches_beyond_the_manifest_are_folded(directory: Path) -> None:
    """Keys that Redis admitted are skipped once each, waiting or still to come, and numbers go on above."""
    partition = Partition.open(directory, 1, LIMITS)
    urls = [make_url(i, f"h{i}.example") for i in range(6)]
    partition.step([("1-0", encode_batch(urls[:3]))], 0, {})
    partition.fold_admitted({1: [urls[0].key], 2: [urls[1].key, urls[4].key]})
    assert (partition.manifest.batch_number, partition.manifest.admitted) == (2, 3)
    partition = Partition.open(directory, 2, LIMITS)
    step = partition.step([("2-0", encode_batch(urls[3:]))], 10, {})
    assert step.batch == (3, 3, [urls[2], urls[3], urls[5]])
    assert partition.state.waiting == 0


def test_urls_of_a_batch_of_which_nothing_is_known_are_admitted_again(directory: Path) -> None:
    """A gap between the manifest and what Redis knows costs repeats; no sequence number is given twice."""
    partition = Partition.open(directory, 1, LIMITS)
    partition.fold_admitted({})
    assert (partition.manifest.batch_number, partition.manifest.admitted) == (0, 0)
    urls = [make_url(i) for i in range(3)]
    partition.step([("1-0", encode_batch(urls))], 0, {})
    partition.fold_admitted({2: [urls[1].key]}, upto=2)
    assert partition.step([], 10, {}).batch == (3, 1 + ADMIT_URLS_MAX, [urls[0], urls[2]])


# Durability.


def test_only_a_durable_point_lets_the_inbox_be_trimmed(directory: Path) -> None:
    """What is committed counts as durable after `make_durable` and not before, in each epoch."""
    partition = Partition.open(directory, 1, LIMITS)
    partition.step([("1-0", encode_batch([make_url(1)]))], 10, {})
    for durable in (("0-0", 0), ("1-0", 1)):
        assert (partition.committed.durable_inbox_id, partition.committed.durable_batch_number) == durable
        assert partition.committed.has_undurable_changes == (durable == ("0-0", 0))
        partition.committed.make_durable()
    partition.step([("2-0", encode_batch([make_url(2)]))], 10, {})
    assert partition.committed.durable_inbox_id == "1-0"
    assert Partition.open(directory, 2, LIMITS).committed.durable_inbox_id == "0-0"


def test_a_manifest_says_which_one_was_durable(directory: Path) -> None:
    """Every manifest after a durable point names it, whatever it commits: what lies before may be deleted."""
    partition = Partition.open(directory, 1, LIMITS)
    for number in range(1, 4):
        partition.step([(f"{number}-0", encode_batch([make_url(number)]))], 0, {})
        partition.committed.make_durable()
        durable = partition.manifest.number
        partition.fold_admitted({number: [number]})
        assert partition.committed.manifest.durable == durable
        partition.step([(f"{number}-1", encode_batch([make_url(100 + number)]))], 0, {})
        assert partition.committed.manifest.durable == durable


def test_a_durable_point_leaves_only_what_is_needed(directory: Path) -> None:
    """Behind it lie the files the manifest names, and the manifest."""
    partition, world = Partition.open(directory, 1, LIMITS), PartitionWorld()
    for number in range(30):
        world.offer(make_url(100 * number + i, f"h{i % 5}.example") for i in range(20))
        world.fetch(4)
        world.step(partition, room=10)
    partition.committed.make_durable()
    names = {path.name for path in (directory / "e1").iterdir()}
    assert names == {*partition.committed.manifest.files_needed(), "MANIFEST"}


def test_a_log_that_has_grown_is_begun_anew(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a durable point it becomes one record that says the same; kept batches move there, forgotten ones go."""
    monkeypatch.setattr("bigcrawl.scheduler.partition.manifest_log.LOG_BYTES_MAX", 2000)
    partition, world = Partition.open(directory, 1, LIMITS), PartitionWorld()
    sizes = []
    for number in range(60):
        world.offer(make_url(100 * number + i, f"h{i % 5}.example") for i in range(20))
        world.fetch(4)
        world.step(partition, room=10)
        partition.committed.forget_batches(partition.manifest.batch_number - 2)
        partition.committed.make_durable()
        partition._check()
        assert list(partition.committed.batches(world.batch_number - 1)) == [world.batches[world.batch_number]]
        sizes.append((directory / "e1" / "MANIFEST").stat().st_size)
    # Fresh keys, eight bytes each, are most of the first record.
    assert max(sizes) < 2.5 * 8 * len(partition.state.tables.seen)
    assert sum(later < earlier for earlier, later in pairwise(sizes)) >= 3
    partition = Partition.open(directory, 2, LIMITS)
    world.bring_up(partition)
    world.drain(partition, LIMITS.host_hot_max)


def test_a_step_is_two_appends_and_a_durable_round_three_syncs(directory: Path) -> None:
    """However many steps lie between, a durable round syncs a queue, the log, and new names; then nothing."""
    files = CountingFiles()
    partition = Partition.open(directory, 1, LIMITS, files)
    partition.step([("0-1", encode_batch([make_url(7)]))], 10, {})
    partition.committed.make_durable()
    for number in range(50):
        files.calls.clear()
        batch = encode_batch([make_url(100 * number + i, f"h{i}.example") for i in range(20)])
        partition.step([(f"1-{number}", batch)], 10, {})
        reads = files.calls.pop("read", 0)
        assert files.calls == {"write_at": 2, "size": 1}
        assert reads <= 2
    for calls in ({"sync_file": 2, "sync_directory": 1, "size": 1}, {}):
        files.calls.clear()
        partition.committed.forget_batches(partition.manifest.batch_number)
        partition.committed.make_durable()
        assert files.calls == calls


def test_a_full_disk_leaves_the_step_to_be_repeated(directory: Path) -> None:
    """Whichever write fails, memory and disk are as before, and the same step then gives the same answer."""
    expected: Step | None = None
    for at in range(1, 5):  # a run, a queue, parked URLs, the manifest
        files = FaultyFiles()
        partition = Partition.open(directory / str(at), 1, LIMITS, files)
        partition.step([("1-0", encode_batch([make_url(i) for i in range(50)]))], 10, {})
        entries = [("2-0", encode_batch([make_url(100 + i, "b.example") for i in range(4200)]))]
        before = (repr(partition), partition.committed.manifest)
        files.fail(files.operations + at, Fault.DISK_FULL)
        with pytest.raises(TransientStoreError, match="No space left on device"):
            partition.step(entries, 10, {"a.example": 3})
        assert (repr(partition), partition.committed.manifest) == before
        partition._check()
        files.mend()
        step = partition.step(entries, 10, {"a.example": 3})
        expected = expected or step
        assert step == expected
        partition._check()
