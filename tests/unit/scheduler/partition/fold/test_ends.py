"""The table of ends: outcomes and forgotten URLs in a partition's fold, over steps, owners and crashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.scheduler.partition.directory import verify_newest
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.partition.reader import TRIES_MAX, read_partition
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.outcomes import pack_keys, pack_outcomes, read_outcome
from bigcrawl.scheduler.records.queued_url import UNCHECKED, QueuedUrl, encode_batch
from tests.support.disks.faulty_files import Fault, FaultyFiles, SimulatedCrashError
from tests.support.sizes import examples
from tests.support.worlds.partition_world import make_runs_early

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LIMITS = PartitionLimits()


def urls(*keys: int, flags: int = 0) -> bytes:
    return encode_batch([QueuedUrl(key, f"h{key % 5}.example", 0, flags, b"body") for key in keys])


def told(entry_id: str, *ends: tuple[int, str]) -> InboxEntry:
    return InboxEntry(entry_id, outcomes=pack_outcomes((key, name, 0) for key, name in ends))


def forgotten(entry_id: str, *keys: int, batch: bytes = b"") -> InboxEntry:
    return InboxEntry(entry_id, batch, forgotten=pack_keys(keys))


def ends_of(partition: Partition, keys: Sequence[int]) -> dict[int, tuple[str, int]]:
    """Name and second of the end of each key that has one."""
    found, values = partition.ends_of(np.array(keys, dtype=np.uint64))
    pairs = zip(keys, found.tolist(), values, strict=True)
    return {key: (read_outcome(value).name, read_outcome(value).time_s) for key, is_there, value in pairs if is_there}


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition.open(tmp_path / "p0000", 1, LIMITS)


def step(partition: Partition, *entries: InboxEntry | tuple[str, bytes]) -> None:
    """Fold all of the entries, in as many steps as it takes."""
    last = entries[-1][0]
    while partition.manifest.inbox_id != last:
        before = partition.manifest.inbox_id
        partition.step(entries, 100, {})
        assert partition.manifest.inbox_id != before, "each step takes an entry at least"
    partition._check()


def test_end_is_kept_with_its_time_and_the_last_one_counts(partition: Partition) -> None:
    """Outcomes of one step and of two, of URLs seen here or not."""
    step(partition, ("1000-0", urls(1, 2)))
    step(partition, told("5000-0", (1, "status:503"), (2, "error:dns")), told("6000-1", (1, "status:200")))
    assert ends_of(partition, [1, 2, 3]) == {1: ("status:200", 6), 2: ("error:dns", 5)}
    step(partition, told("9000-0", (2, "dropped:forbidden"), (3, "status:404")))
    assert ends_of(partition, [1, 2, 3]) == {
        1: ("status:200", 6),
        2: ("dropped:forbidden", 9),
        3: ("status:404", 9),
    }
    assert (len(partition.state.tables.seen), partition.manifest.rejected) == (2, 0)


def test_entry_of_outcomes_alone_is_no_damaged_batch(partition: Partition) -> None:
    """Nothing is set aside or counted as URLs; one that brings URLs as well has both folded."""
    step(partition, told("1-0", (1, "status:200")))
    assert (partition.manifest.folded_urls, partition.manifest.rejected, partition.state.waiting) == (0, 0, 0)
    both = InboxEntry("2-0", urls(7), outcomes=pack_outcomes([(8, "status:200", 0)]))
    step(partition, both)
    assert (partition.manifest.folded_urls, partition.manifest.rejected, len(partition.state.tables.seen)) == (1, 0, 1)
    assert list(ends_of(partition, [1, 7, 8])) == [1, 8]


def test_torn_outcomes_are_set_aside_and_stop_nothing(partition: Partition, tmp_path: Path) -> None:
    """They are kept below rejected/, by the entry and the field; the other fields and entries are folded."""
    torn = InboxEntry("1-0", urls(1), outcomes=b"torn")
    step(partition, torn, told("2-0", (1, "status:200")), InboxEntry("3-0", forgotten=b"torn"))
    assert (len(partition.state.tables.seen), partition.manifest.rejected) == (1, 2)
    assert list(ends_of(partition, [1])) == [1]
    kept = {path.name for path in (tmp_path / "p0000" / "rejected").iterdir()}
    assert kept == {"1-0-outcomes", "3-0-forgotten"}


def test_forgotten_url_is_new_again_and_has_no_end(partition: Partition) -> None:
    """Offered once more it is queued once more, and only once; others stay seen and ended."""
    step(partition, ("1-0", urls(1, 2)), told("2-0", (1, "status:200"), (2, "status:200")))
    step(partition, forgotten("3-0", 1, 99))
    assert list(ends_of(partition, [1, 2])) == [2]
    assert len(partition.state.tables.seen) == 1
    before = partition.manifest.duplicates
    step(partition, ("4-0", urls(1, 1, 2)))
    assert (len(partition.state.tables.seen), partition.manifest.duplicates - before) == (2, 2)


@pytest.mark.parametrize("together", [True, False])
def test_word_to_forget_covers_what_was_before_it_and_nothing_after(partition: Partition, together: bool) -> None:
    """Whether the entries come in one step or one by one, the order in the inbox is what counts."""
    entries = [
        InboxEntry("1-0", urls(1, 2)),
        told("2-0", (1, "status:200"), (2, "status:200")),
        forgotten("3-0", 1, batch=urls(1)),
        told("4-0", (1, "status:404")),
        forgotten("5-0", 2),
        InboxEntry("6-0", urls(3)),
    ]
    if together:
        step(partition, *entries)
    else:
        for entry in entries:
            step(partition, entry)
    assert ends_of(partition, [1, 2, 3]) == {1: ("status:404", 0)}
    assert (len(partition.state.tables.seen), partition.manifest.folded_urls, partition.manifest.duplicates) == (
        2,
        4,
        0,
    )


def test_unchecked_url_that_ended_is_queued_again_and_stays_seen(partition: Partition) -> None:
    """What `retry` sends: the mark of the new beginning, and the URL past the seen check."""
    step(partition, ("1-0", urls(1)), told("2-0", (1, "error:timeout")))
    queued = partition.manifest.admitted + partition.state.waiting
    step(partition, told("3000-0", (1, "queued-again")), InboxEntry("3000-1", urls(1, flags=UNCHECKED)))
    assert partition.manifest.admitted + partition.state.waiting == queued + 1
    assert ends_of(partition, [1]) == {1: ("queued-again", 3)}
    step(partition, ("4000-0", urls(1)))
    assert partition.manifest.admitted + partition.state.waiting == queued + 1


def test_ends_outlive_their_owner_and_are_verified(
    partition: Partition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In runs and fresh, taken over by the next epoch; a flipped byte of a run is found."""
    make_runs_early(monkeypatch, 20)
    partition = Partition.open(tmp_path / "p0000", 2, LIMITS)
    keys = list(range(1, 300))
    for start in range(0, len(keys), 15):
        step(partition, told(f"{start + 1000}-0", *((key, f"status:{200 + key}") for key in keys[start : start + 15])))
    partition.committed.make_durable()
    heir = Partition.open(tmp_path / "p0000", 3, LIMITS)
    heir._check()
    assert {key: name for key, (name, _) in ends_of(heir, keys).items()} == {k: f"status:{200 + k}" for k in keys}
    assert list(verify_newest(tmp_path / "p0000")) == []
    run = max((tmp_path / "p0000" / "e3").glob("end-*"), key=lambda path: path.stat().st_size)
    data = bytearray(run.read_bytes())
    data[len(data) // 3] ^= 1
    run.write_bytes(data)
    assert [problem.path for problem in verify_newest(tmp_path / "p0000")] == [str(run)]


@pytest.mark.parametrize("fault", list(Fault))
def test_step_that_fails_is_repeated_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    """Whichever of its writes fails, or is the last of a process: after the repeat all ends are there once."""
    make_runs_early(monkeypatch, 5)
    entries = [told("10-0", *((key, "status:200") for key in range(1, 9))), forgotten("11-0", 3, 4)]
    number, failed = 0, True
    while failed:
        number += 1
        directory, files = tmp_path / f"p{number:04d}", FaultyFiles()
        partition = Partition.open(directory, 1, LIMITS, files)
        step(partition, ("1-0", urls(*range(1, 12))), told("2-0", *((key, "error:dns") for key in range(1, 7))))
        files.fail(files.operations + number, fault)
        failed = False
        try:
            step(partition, *entries)
        except TransientStoreError:
            failed = True
        except SimulatedCrashError:
            failed = True
            partition = Partition.open(directory, 2, LIMITS)
        files.mend()
        partition._check()
        if partition.manifest.inbox_id == "2-0":
            assert ends_of(partition, range(1, 12)) == dict.fromkeys(range(1, 7), ("error:dns", 0))
            assert len(partition.state.tables.seen) == 11
        step(partition, *entries)
        names = {key: name for key, (name, _) in ends_of(partition, range(1, 12)).items()}
        assert names == dict.fromkeys([1, 2, 5, 6, 7, 8], "status:200")
        assert len(partition.state.tables.seen) == 9
    assert number > 3, "some writes were failed"


ENTRIES = st.lists(
    st.tuples(
        st.sampled_from(["urls", "ends", "forget", "retry"]),
        st.lists(st.integers(1, 12), min_size=1, max_size=4),
        st.booleans(),
    ),
    max_size=25,
)


@settings(max_examples=examples(60))
@given(rows=ENTRIES)
def test_fold_is_what_its_entries_say_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, list[int], bool]]
) -> None:
    """A model of two dictionaries, however the entries are put together in steps, over changes of the owner."""
    directory = tmp_path_factory.mktemp("fold") / "p0000"
    partition = Partition.open(directory, 1, LIMITS)
    seen: set[int] = set()
    ends: dict[int, tuple[str, int]] = {}
    queued, waiting = 0, []
    for number, (kind, keys, ends_step) in enumerate(rows, 1):
        entry_id = f"{number}000-0"
        if kind == "urls":
            queued += len(set(keys) - seen)
            seen |= set(keys)
            waiting.append(InboxEntry(entry_id, urls(*keys)))
        elif kind == "ends":
            ends |= dict.fromkeys(keys, ("status:200", number))
            waiting.append(told(entry_id, *((key, "status:200") for key in keys)))
        elif kind == "forget":
            seen -= set(keys)
            ends = {key: end for key, end in ends.items() if key not in keys}
            waiting.append(forgotten(entry_id, *keys))
        else:
            queued += len(keys)
            waiting.append(InboxEntry(entry_id, urls(*keys, flags=UNCHECKED)))
        if ends_step:
            step(partition, *waiting)
            waiting = []
            partition = Partition.open(directory, partition.manifest.epoch + 1, LIMITS)
    if waiting:
        step(partition, *waiting)
    assert ends_of(partition, range(1, 13)) == ends
    assert (len(partition.state.tables.seen), partition.manifest.admitted + partition.state.waiting) == (
        len(seen),
        queued,
    )


# --- read from outside


def test_reader_sees_what_is_committed(partition: Partition, tmp_path: Path) -> None:
    """Without owning the partition, and without changing a file of it."""
    step(partition, ("1-0", urls(1, 2)), told("7000-0", (1, "status:200")))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    ended, waits, unknown = (read_partition(tmp_path / "p0000", key, 0) for key in (1, 2, 3))
    assert ended is not None
    assert ended.end is not None
    assert (ended.inbox_id, ended.is_seen, read_outcome(ended.end)) == ("7000-0", True, ("status:200", 0, 7))
    assert waits is not None
    assert unknown is not None
    assert (waits.is_seen, waits.end, unknown.is_seen, unknown.end) == (True, None, False, None)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert read_partition(tmp_path / "p0009", 1, 0) is None


def test_reader_tries_again_when_an_owner_deletes_under_its_hands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rest here is an owner's chance to finish: the reader finds the new state instead of failing."""
    make_runs_early(monkeypatch, 5)
    directory = tmp_path / "p0000"
    partition = Partition.open(directory, 1, LIMITS)
    step(partition, ("1-0", urls(*range(1, 30))))
    [*runs] = (directory / "e1").glob("run-*")
    away = {run: run.rename(run.with_name("gone-" + run.name)) for run in runs}
    assert away, "URLSeen is in runs"
    rests: list[float] = []

    def rest(seconds: float) -> None:
        rests.append(seconds)
        if len(rests) == 2:
            for run, hidden in away.items():
                hidden.rename(run)

    found = read_partition(directory, 7, 0, rest=rest)
    assert found is not None
    assert found.is_seen
    assert len(rests) == 2 < TRIES_MAX
