"""All partitions of a crawl, and the rows by which they find out which PLDs are mirrors.

Nodes and Redis are played: pages are fetched by name of their PLD and text of their content, and rows travel when told
to. The partitions are real ones.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

from bigcrawl.drum.files import DiskFiles
from bigcrawl.features.mirrors.fold import Mirrors
from bigcrawl.features.mirrors.rows import SAMPLED, pack_sampled
from bigcrawl.features.mirrors.verdicts import MirrorRules, is_sample
from bigcrawl.scheduler.partition.fold.imported_rows import pack_rows, rows_to_export
from bigcrawl.scheduler.partition.manifest_log import decode_manifest
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.partition.reader import read_plds
from bigcrawl.scheduler.partition.tables import Tables
from bigcrawl.scheduler.queues.epoch_directory import MANIFEST, EpochDirectory, epoch_path, list_committed
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.observed import KINDS, ObservedRows, rows_by_partition
from bigcrawl.scheduler.records.queued_url import encode_batch
from bigcrawl.url.key import PUBLIC_KEYS
from tests.support.keys import pld_key
from tests.support.observed_rows import pack_each
from tests.support.worlds.partition_world import SetBudgets, make_edges, make_url, pld_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bigcrawl.features.mirrors.verdicts import MirrorVerdict
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

PARTITIONS: Final = 3
RULES: Final = MirrorRules(share=0.8, divisor=20)
LIMITS: Final = PartitionLimits(host_hot_max=10_000, features=(Mirrors(RULES),))


def content_of(text: str) -> int:
    """The key of a content."""
    return PUBLIC_KEYS.of_bytes(text.encode())


class MirrorWorld:
    """Partitions, rows under way, and what was logged."""

    def __init__(self, directory: Path, *, times_told: int = 1, limits: PartitionLimits = LIMITS) -> None:
        """Deliver what partitions tell each other `times_told` times."""
        self._directory = directory
        self._limits = limits
        self._times_told = times_told
        self._epoch = 0
        self._entries = 0
        self._urls = 0
        self._under_way: list[ObservedRows] = []
        self.told: list[str] = []
        self.rows = 0
        self.take_over()

    def take_over(self) -> None:
        """Let other nodes own all partitions from now on. Rows under way are lost with the old ones."""
        self._epoch += 1
        self._under_way.clear()
        self.partitions = [
            Partition.open(
                self.directory(number),
                self._epoch,
                self._limits,
                budgets=SetBudgets(100),
                pld_of=pld_of,
                pld_key=pld_key,
            )
            for number in range(PARTITIONS)
        ]

    def directory(self, number: int) -> Path:
        """Where the files of a partition are."""
        return self._directory / f"p{number:04d}"

    def link(self, pld: str, links: int, *, since: int = 0) -> None:
        """Let so many other PLDs link to one."""
        edges = make_edges([(f"linking{n}.example", pld) for n in range(since, since + links)])
        self._step(self._home(pld), InboxEntry(self._next_id(), encode_batch([]), edges))

    def fetch(self, pld: str, texts: Iterable[str]) -> None:
        """Fetch pages of a PLD with these contents, as a node does that remembers nothing."""
        self.fetch_contents(pld, map(content_of, texts))

    def fetch_contents(self, pld: str, contents: Iterable[int]) -> None:
        """Fetch pages with contents of these keys."""
        for content in contents:
            if is_sample(content):
                row = pack_sampled(pld_key(pld), content)
                self._under_way.append(ObservedRows(self._home(pld), row, SAMPLED))

    def travel(self) -> None:
        """Let rows travel until all have arrived."""
        while self._under_way:
            by_partition: dict[int, list[bytearray]] = defaultdict(lambda: [bytearray() for _ in KINDS])
            for partition, rows, kind in self._under_way:
                by_partition[partition][kind] += rows
            self.rows += len(self._under_way)
            self._under_way.clear()
            for partition, rows_by_kind in sorted(by_partition.items()):
                hints: list[bytes | bytearray] = [*rows_by_kind]
                hints[SAMPLED] = b""
                again = [pack_each(*hints)] * (self._times_told - 1)
                for contents in filter(None, (pack_each(*rows_by_kind), *again)):
                    self._step(partition, InboxEntry(self._next_id(), observed=contents))

    def import_from(self, other: MirrorWorld, names: Iterable[str] = ("sites", "samples", "mirrors")) -> None:
        """Merge the rows that an export of another crawl with the same keys has in these tables."""
        for number in range(PARTITIONS):
            directory = other.directory(number)
            [epoch] = list_committed(directory, DiskFiles())[:1]
            own = EpochDirectory(epoch_path(directory, epoch), epoch, DiskFiles())
            manifest = decode_manifest(own.relative_path(MANIFEST), own.read(MANIFEST))
            tables = Tables.restore(own, manifest.tables)
            for name in names:
                for records in tables[name].records():
                    for rows in rows_to_export(name, records):
                        assert rows.values is not None
                        packed = pack_rows(name, rows.keys.tobytes(), rows.values.tobytes())
                        self._step(number, InboxEntry(self._next_id(), rows=packed))

    def find(self, pld: str) -> QueuedUrl:
        """Discover a URL of a PLD, which is where verdicts take effect."""
        self._urls += 1
        url = make_url(self._urls, f"www.{pld}")
        self._step(self._home(pld), InboxEntry(self._next_id(), encode_batch([url])))
        return url

    def divisor(self, pld: str) -> int:
        """What the budget of a PLD is divided by."""
        found = self.partitions[self._home(pld)].budget_divisors(np.array([pld_key(pld)], dtype=np.uint64))
        return 1 if found is None else int(found[0])

    def mirrors_of(self, plds: Iterable[str]) -> set[str]:
        """Which of some PLDs are taken for mirrors."""
        return {pld for pld in plds if self.divisor(pld) > 1}

    def verdict(self, pld: str) -> MirrorVerdict | None:
        """What the files say of a PLD."""
        found = read_plds(self.directory(self._home(pld)), [pld_key(pld)])
        return found.said["mirrors"][0] if found is not None else None

    def counted(self) -> int:
        """How many mirrors the partitions count."""
        return sum(partition.manifest.counts.get("mirrors", 0) for partition in self.partitions)

    def _home(self, pld: str) -> int:
        return pld_key(pld) % PARTITIONS

    def _next_id(self) -> str:
        self._entries += 1
        return f"{self._entries}-0"

    def _step(self, number: int, entry: InboxEntry) -> None:
        step = self.partitions[number].step([entry], 0, {})
        assert not step.rejected
        self.told += step.messages
        for kind, rows in step.hints:
            self._under_way += rows_by_partition(kind, rows, PARTITIONS)
