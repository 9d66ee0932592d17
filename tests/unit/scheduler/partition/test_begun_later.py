"""A new partition of a node begins in memory: its first step makes the directory and the log of the epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import OwnershipLostError, TransientStoreError
from bigcrawl.scheduler.partition.committed import newest_manifest
from bigcrawl.scheduler.partition.directory import last_epoch
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.queued_url import encode_batch
from tests.support.disks.faulty_files import Fault, FaultyFiles
from tests.support.worlds.partition_world import make_url

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.drum.files import Files

ENTRY = ("1-0", encode_batch([make_url(7)]))


def opened(directory: Path, epoch: int = 1, files: Files | None = None) -> Partition:
    return Partition.open(directory, epoch, PartitionLimits(), files, require_place=lambda: None)


def test_partition_that_holds_nothing_leaves_nothing(tmp_path: Path) -> None:
    """Opened, stepped in vain and made durable, it has no file, and the next owner may have the same epoch."""
    for _ in range(2):
        partition = opened(tmp_path / "p")
        partition.step([], 10, {})
        assert not partition.committed.has_undurable_changes
        partition.committed.make_durable()
        partition._check()
        assert not (tmp_path / "p").exists()


def test_first_step_makes_what_later_owners_take_over(tmp_path: Path) -> None:
    """And it is durable like any other."""
    partition = opened(tmp_path / "p")
    partition.step([ENTRY], 0, {})
    partition._check()
    assert partition.committed.has_undurable_changes
    partition.committed.make_durable()
    assert last_epoch(tmp_path / "p") == 1
    later = opened(tmp_path / "p", epoch=2)
    assert later.manifest.inbox_id == "1-0"
    assert later.state.waiting == 1


def test_first_step_may_be_of_any_size(tmp_path: Path) -> None:
    """Files of a table are written while it is folded, before the step ends."""
    partition = opened(tmp_path / "p")
    partition.step([("1-0", encode_batch([make_url(number) for number in range(10_000)]))], 0, {})
    partition._check()
    assert list((tmp_path / "p" / "e1").glob("run-*"))


def test_of_two_owners_of_an_epoch_the_first_to_step_has_it(tmp_path: Path) -> None:
    """A Redis that has forgotten a claim may give an epoch twice. The other owner writes nothing."""
    one, other = opened(tmp_path / "p"), opened(tmp_path / "p")
    one.step([ENTRY], 10, {})
    for _ in range(2):
        with pytest.raises(OwnershipLostError):
            other.step([ENTRY], 10, {})
    one._check()
    assert newest_manifest(tmp_path / "p", one.committed.own.files) == one.manifest


def test_owner_that_wrote_nothing_does_not_come_before_a_later_one(tmp_path: Path) -> None:
    """It slept since its claim, and another node has a later epoch."""
    late = opened(tmp_path / "p")
    opened(tmp_path / "p", epoch=2).step([ENTRY], 10, {})
    with pytest.raises(OwnershipLostError):
        late.step([ENTRY], 10, {})
    assert last_epoch(tmp_path / "p") == 2


@pytest.mark.parametrize("fault", [Fault.DISK_FULL, Fault.FAILS_AFTER])
def test_first_step_that_fails_is_repeated(tmp_path: Path, fault: Fault) -> None:
    """Whichever operation fails: the next try makes the step, or the partition is claimed again in the next epoch."""
    for at in range(1, 9):
        files = FaultyFiles()
        partition = opened(tmp_path / f"p{at}", files=files)
        files.fail(files.operations + at, fault)
        for epoch in (2, 3):
            try:
                partition.step([ENTRY], 10, {})
            except TransientStoreError:
                continue
            except OwnershipLostError:  # the disk made a directory, and reported an error
                assert fault is Fault.FAILS_AFTER
                partition = opened(tmp_path / f"p{at}", epoch, files)
        partition.step([ENTRY], 10, {})
        partition._check()
        assert partition.manifest.inbox_id == "1-0"


def test_place_is_asked_for_before_a_directory_is_made(tmp_path: Path) -> None:
    """On a mount point whose disk is gone, nothing is made; the step is repeated until it is back."""
    gone = TransientStoreError("not mounted")

    def require_place() -> None:
        if gone is not None:
            raise gone

    partition = Partition.open(tmp_path / "p", 1, PartitionLimits(), require_place=require_place)
    with pytest.raises(TransientStoreError, match="not mounted"):
        partition.step([ENTRY], 10, {})
    assert not (tmp_path / "p").exists()
    gone = None  # type: ignore[assignment]
    partition.step([ENTRY], 10, {})
    assert last_epoch(tmp_path / "p") == 1
