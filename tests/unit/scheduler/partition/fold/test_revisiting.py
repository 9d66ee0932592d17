"""Revisits in a partition's fold, over steps, owners and crashes."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.queues.revisits import NEVER_S
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.outcomes import pack_keys
from bigcrawl.scheduler.records.queued_url import QueuedUrl
from bigcrawl.scheduler.records.revisits import Revisit, encode_revisits
from tests.support.disks.faulty_files import Fault, FaultyFiles, SimulatedCrashError

if TYPE_CHECKING:
    from pathlib import Path

LIMITS = PartitionLimits()
NOW_S = 1_800_000_000


def make_revisit(key: int, number: int, wait_s: int = 100) -> Revisit:
    return Revisit(NOW_S + wait_s, number, QueuedUrl(key, f"h{key}.example", 0, 0, b"visit %d" % number))


def entry(entry_id: str, *revisits: Revisit) -> InboxEntry:
    return InboxEntry(entry_id, revisits=encode_revisits(revisits))


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition.open(tmp_path / "p0000", 1, LIMITS)


def admitted(partition: Partition, now_s: int, *entries: InboxEntry) -> list[bytes]:
    """The bodies of the URLs that a step admits."""
    batch = partition.step(entries, 100, {}, now_s=now_s).batch
    partition._check()
    return [url.body for url in batch.urls] if batch else []


def test_a_revisit_waits_for_its_time(partition: Partition) -> None:
    """It is admitted once, when it is due, and is no waiting URL before."""
    assert admitted(partition, NOW_S, entry("1-0", make_revisit(1, 1))) == []
    assert (partition.revisits, partition.waiting) == (1, 0)
    assert abs(partition.next_revisit_s - NOW_S - 100) <= 7
    assert admitted(partition, NOW_S + 50) == []
    assert admitted(partition, NOW_S + 110) == [b"visit 1"]
    assert admitted(partition, NOW_S + 200) == []
    assert (partition.revisits, partition.next_revisit_s) == (0, NEVER_S)


def test_of_one_visit_one_revisit_counts(partition: Partition) -> None:
    """A repeated entry, and a second fetch of the same visit, add nothing; a later visit does."""
    admitted(partition, NOW_S, entry("1-0", make_revisit(1, 1), make_revisit(1, 1)))
    admitted(partition, NOW_S, entry("2-0", make_revisit(1, 1)))
    assert partition.revisits == 1
    assert admitted(partition, NOW_S + 110) == [b"visit 1"]
    admitted(partition, NOW_S, entry("3-0", make_revisit(1, 1), make_revisit(1, 2), make_revisit(1, 1)))
    assert partition.revisits == 1
    assert admitted(partition, NOW_S + 300) == [b"visit 2"]


def test_a_forgotten_url_begins_anew(partition: Partition) -> None:
    """After `forget` its visits are counted from one, and an old chain of visits ends."""
    admitted(partition, NOW_S, entry("1-0", make_revisit(1, 5)))
    admitted(partition, NOW_S, InboxEntry("2-0", forgotten=pack_keys([1])))
    admitted(partition, NOW_S, entry("3-0", make_revisit(1, 1)))
    assert partition.revisits == 2
    admitted(partition, NOW_S, entry("4-0", make_revisit(1, 6)), entry("4-1", make_revisit(1, 2)))
    assert partition.revisits == 3


def test_revisits_that_cannot_be_read_are_set_aside(partition: Partition) -> None:
    """They are counted and kept, and the others are folded."""
    step = partition.step([InboxEntry("1-0", revisits=b"torn"), entry("2-0", make_revisit(2, 1))], 100, {}, now_s=NOW_S)
    assert (step.rejected, partition.revisits) == (1, 1)


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_DURING, Fault.CRASH_AFTER])
def test_a_crash_loses_and_repeats_nothing(tmp_path: Path, fault: Fault) -> None:
    """Whichever write of the steps fails, the old owner and the next one admit each revisit exactly once."""
    entries = [entry(f"{number}-0", make_revisit(number, 1)) for number in range(1, 4)]
    crashes = 0
    for at in range(1, 40):
        path = tmp_path / f"p{at:04d}"
        with suppress(SimulatedCrashError):
            partition = Partition.open(path, 1, LIMITS, FaultyFiles(at, fault))
            for place, each in enumerate(entries):
                admitted(partition, NOW_S + 60 * place, each)
                partition.make_durable()
            crashes -= 1
        crashes += 1
        heir = Partition.open(path, 2, LIMITS)
        kept = [url.key for batch in heir.pending_batches(0) for url in batch.urls]
        for each in (*entries, InboxEntry("9-0")):
            step = heir.step([each], 100, {}, now_s=NOW_S + 1_000)
            kept += [url.key for url in step.batch.urls] if step.batch else []
        assert sorted(kept) == [1, 2, 3], (fault, at)
    assert crashes > 15
