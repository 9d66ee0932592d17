"""All that a partition's files hold, read by a process that does not own the partition.

It is read from links, so the owner may go on and delete its own files meanwhile.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bigcrawl.drum.files import store_errors
from bigcrawl.scheduler.partition.admit_batch import decode_admit_batch
from bigcrawl.scheduler.partition.fold.imported_rows import rows_to_export
from bigcrawl.scheduler.partition.tables import Tables, TableStates
from bigcrawl.scheduler.partition.takeover import take_over
from bigcrawl.scheduler.queues.epoch_directory import MANIFEST, EpochDirectory
from bigcrawl.scheduler.queues.fifo import Fifo
from bigcrawl.scheduler.queues.front_queues import LEVELS
from bigcrawl.scheduler.queues.parked_queues import ParkedQueues
from bigcrawl.scheduler.queues.unrunnable import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl.drum.files import Files
    from bigcrawl.scheduler.partition.fold.imported_rows import TableRows
    from bigcrawl.scheduler.partition.takeover import Inherited
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

_AFTER_ALL = 1 << 62  # an epoch that no owner reaches
_PARKED_AT_ONCE = 4_096


class Contents:
    """The committed state of a partition at one moment.

    Memory: the manifest, and a block of each file that is read.

    Attributes:
        inbox_id: the last inbox entry that is in it.
        batch_number: the last admit batch that is in it.
        untold: rows `found` for the partitions of contents, which may not have them yet.
    """

    def __init__(self, own: EpochDirectory, inherited: Inherited) -> None:
        self._own = own
        self._manifest, self._batches = inherited
        self.inbox_id = self._manifest.inbox_id
        self.batch_number = self._manifest.batch_number
        self.untold = self._manifest.untold

    def __repr__(self) -> str:
        return f"<Contents {self._own.path} upto={self.inbox_id}>"

    @classmethod
    def of(cls, directory: Path, links: Path, files: Files) -> Contents | None:
        """Link the files of the newest manifest.

        Args:
            directory: the directory of the partition.
            links: an empty directory on the same file system. The caller deletes it.
            files: the file system.

        Returns:
            None if nothing was ever committed.

        Raises:
            CorruptionError: the manifest, or a file that it names, is damaged.
            TransientStoreError: the disk failed.
        """
        with store_errors(directory):
            own = EpochDirectory(links, _AFTER_ALL, files)
            inherited = take_over(directory, own)
        return None if inherited is None else cls(own, inherited)

    def batches(self, above: int) -> Iterator[QueuedUrl]:
        """Yield the URLs of admit batches above a number, unless only their keys are left.

        Raises:
            CorruptionError: a batch is damaged.
        """
        for place, data in zip(self._manifest.retained, self._batches, strict=True):
            if place.number > above:
                batch = decode_admit_batch(self._own.place(MANIFEST), data, place.offset)
                yield from batch.urls if batch.has_text else ()

    def waiting(self) -> Iterator[QueuedUrl]:
        """Yield all URLs that wait on disk. Those of one host and level come in the order in which they would leave.

        Raises:
            CorruptionError: a file is damaged.
            TransientStoreError: the disk failed.
        """
        already = Counter(dict(self._manifest.already))
        with store_errors(self._own.path):
            for url in self._in_order():
                if already[url.key]:
                    already[url.key] -= 1  # Redis has admitted it, and the disk did not know
                else:
                    yield url

    def _in_order(self) -> Iterator[QueuedUrl]:
        parked = ParkedQueues.restore(self._own, self._manifest.parked)
        for host in parked.hosts:
            while host in parked:
                yield from parked.take(host, _PARKED_AT_ONCE)
        for name in sorted(self._manifest.queues, key=_order):
            queue = Fifo.restore(self._own, name, self._manifest.queues[name])
            while len(queue):
                yield from queue.pop_block()

    def rows(self) -> Iterator[TableRows]:
        """Yield the rows of all tables in portions.

        Raises:
            CorruptionError: a file is damaged.
            TransientStoreError: the disk failed.
        """
        tables = Tables.restore(self._own, self._manifest.tables)
        with store_errors(self._own.path):
            for name in TableStates._fields:
                for records in getattr(tables, name).records():
                    yield from rows_to_export(name, records)


def _order(name: str) -> tuple[int, ...]:
    """Turns before URLs over budget; in a turn by tier, and then the highest level first. Unrunnable URLs are last."""
    kind, *numbers = name.split("-")
    if name.startswith(PREFIX):
        return (2,)
    if kind == "queue":
        turn, level = map(int, numbers)
        return 0, turn, level // LEVELS, -(level % LEVELS)
    return 1, int(numbers[0]), int(kind == "arrived"), 0
