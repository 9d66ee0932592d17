"""Reads the files of a partition that another process owns; they are hard-linked, as the owner may delete its own."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bigcrawl.drum.files import store_errors
from bigcrawl.scheduler.partition.admit_batch import decode_admit_batch
from bigcrawl.scheduler.partition.fold.imported_rows import rows_to_export
from bigcrawl.scheduler.partition.tables import KINDS, Tables
from bigcrawl.scheduler.partition.takeover import take_over
from bigcrawl.scheduler.queues.epoch_directory import MANIFEST, EpochDirectory
from bigcrawl.scheduler.queues.fifo import Fifo
from bigcrawl.scheduler.queues.front_queues import level_in
from bigcrawl.scheduler.queues.parked_queues import ParkedQueues
from bigcrawl.scheduler.queues.timed import KEPT
from bigcrawl.scheduler.queues.unrunnable import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl.drum.files import Files
    from bigcrawl.scheduler.partition.fold.imported_rows import TableRows
    from bigcrawl.scheduler.partition.takeover import InheritedFiles
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

_AFTER_ALL = 1 << 62  # an epoch that no owner reaches
_PARKED_AT_ONCE = 4_096


class PartitionContents:
    """The committed state of a partition at one moment.

    All methods raise CorruptionError if a file is damaged, and TransientStoreError if the disk fails.

    Attributes:
        inbox_id, batch_number: the last inbox entry and the last admit batch that this state includes.
        untold: rows `OWED` to other partitions, which might not have received them yet.
    """

    def __init__(self, own: EpochDirectory, inherited: InheritedFiles) -> None:
        self._own = own
        self._manifest, self._batches = inherited
        self.inbox_id = self._manifest.inbox_id
        self.batch_number = self._manifest.batch_number
        self.untold = self._manifest.untold

    @classmethod
    def of(cls, directory: Path, links: Path, files: Files) -> PartitionContents | None:
        """Hard-link the files of the newest manifest into `links`, an empty directory that the caller deletes.

        `links` must be on the file system of `directory`, the partition's own. Return None if nothing was ever
        committed.
        """
        with store_errors(directory):
            own = EpochDirectory(links, _AFTER_ALL, files)
            inherited = take_over(directory, own)
        return None if inherited is None else cls(own, inherited)

    def urls_of_batches(self, above: int) -> Iterator[QueuedUrl]:
        for place, data in zip(self._manifest.retained, self._batches, strict=True):
            if place.number > above:
                batch = decode_admit_batch(self._own.relative_path(MANIFEST), data, place.offset)
                yield from batch.urls if batch.has_text else ()

    def waiting_urls(self) -> Iterator[QueuedUrl]:
        """Yield all URLs on disk; those of one host and priority level in the order in which they would be admitted."""
        already = Counter(dict(self._manifest.already))
        with store_errors(self._own.path):
            for url in self._in_order():
                if already[url.key]:
                    already[url.key] -= 1  # Redis has admitted it, which this manifest does not record
                else:
                    yield url

    def kept_urls(self) -> Iterator[QueuedUrl]:
        """Yield the visited URLs that will not be visited again. Raises as `waiting_urls`."""
        with store_errors(self._own.path):
            yield from self._of_queue(KEPT) if KEPT in self._manifest.queues else ()

    def _in_order(self) -> Iterator[QueuedUrl]:
        parked = ParkedQueues.restore(self._own, self._manifest.parked)
        for host in parked.hosts:
            while host in parked:
                yield from parked.take(host, _PARKED_AT_ONCE)
        for name in sorted(self._manifest.queues.keys() - {KEPT}, key=_queue_sort_key):
            yield from self._of_queue(name)

    def _of_queue(self, name: str) -> Iterator[QueuedUrl]:
        queue = Fifo.restore(self._own, name, self._manifest.queues[name])
        while len(queue):
            yield from queue.pop_block()

    def table_rows(self) -> Iterator[TableRows]:
        tables = Tables.restore(self._own, self._manifest.tables)
        with store_errors(self._own.path):
            for name in KINDS:
                for records in tables[name].records():
                    yield from rows_to_export(name, records)


def _queue_sort_key(name: str) -> tuple[int, ...]:
    """Return a sort key for queues: by turn, tier, and level from high to low; unrunnable URLs last."""
    kind, *numbers = name.split("-")
    if name.startswith(PREFIX):
        return (2,)
    if kind == "queue":
        level, number = level_in(numbers[1])
        return 0, int(numbers[0]), level // number, -(level % number)
    return 1, int(numbers[0]), int(kind == "arrived"), 0
