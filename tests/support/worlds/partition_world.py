"""What surrounds a partition: its inbox, and the part of Redis that takes numbered admit batches.

It keeps the promises of the scripts (batch n only after n - 1, a repeat changes nothing) and checks the
partition's: each URL admitted once, in order of arrival within its host and level, with unbroken numbers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.content.copies import read_copies
from bigcrawl.drum.bucket import Kind
from bigcrawl.features.copies.rows import pack_seen
from bigcrawl.scheduler.budgets.allowances import Allowances
from bigcrawl.scheduler.partition import tables
from bigcrawl.scheduler.queues.front_queues import LEVELS, level_of
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.queued_url import UNCHECKED, QueuedUrl, encode_batch
from tests.support.keys import pld_key
from tests.support.observed_rows import pack_each

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt
    import pytest

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.allowances import Limiting
    from bigcrawl.scheduler.partition.partition import AdmitBatch, Partition


def make_url(number: int, host: str = "a.example", priority: int = 0, flags: int = 0) -> QueuedUrl:
    """A URL whose key is a function of `number`, spread over all 64 bits and never the same for two."""
    key = (number * 0x9E3779B97F4A7C15 + 1) % (1 << 64)
    return QueuedUrl(key, host, priority, flags, b"http://%s/%d" % (host.encode(), number))


def waiting_by_level(partition: Partition) -> tuple[int, ...]:
    """How many URLs each priority level has in the front queues, lowest level first, extra ones included."""
    counts = partition.state.turns.front.counts()
    return tuple(sum(counts[level::LEVELS]) for level in range(LEVELS))


def is_withheld(partition: Partition) -> bool:
    """Whether URLs wait, and all of them are over budget and stay so until budgets change."""
    return partition.state.withheld() == partition.state.waiting > 0


def make_edges(pairs: Iterable[tuple[str, str]]) -> bytes:
    """Edges between PLDs as an inbox entry has them."""
    return b"".join(pld_key(pld).to_bytes(8, "little") for pair in pairs for pld in pair)


def pld_of(host: str) -> str:
    """The last two labels."""
    return ".".join(host.rsplit(".", 2)[-2:])


def make_runs_early(patches: pytest.MonkeyPatch, fresh_max: int) -> None:
    """Let tables write runs as in a life too long for a test: from so many fresh records on."""
    for name, kind in tables.KINDS.items():
        patches.setitem(tables.KINDS, name, Kind(*kind[:3], fresh_max))


class SetBudgets:
    """Budgets by PLD, and one for all others; more, where asked, for each PLD that links to it."""

    def __init__(self, ordinary: int, by_pld: Mapping[str, int] | None = None, *, for_link: int = 0) -> None:
        self._ordinary = ordinary
        self._by_key = {pld_key(pld): budget for pld, budget in (by_pld or {}).items()}
        self._for_link = for_link

    def __repr__(self) -> str:
        return f"<SetBudgets {self._ordinary} {sorted(self._by_key.values())} {self._for_link}>"

    def allow(
        self,
        urls: Sequence[QueuedUrl],
        plds: KeyArray,
        in_degrees: npt.NDArray[np.uint32],
        limiting: Sequence[Limiting],
    ) -> Allowances:
        set_ = np.array([self._by_key.get(pld, self._ordinary) for pld in plds.tolist()], dtype=np.uint32)
        budgets = set_ + in_degrees * np.uint32(self._for_link)
        return Allowances(plds, budgets, urls)


class PartitionWorld:
    """Inbox and Redis of one partition, and what must come out in the end."""

    def __init__(self) -> None:
        self.inbox: list[InboxEntry] = []
        self.hot: Counter[str] = Counter()
        self.away: dict[str, int] = {}  # hosts snoozed or retired, and how many of their URLs may be hot
        self.admitted: list[QueuedUrl] = []
        self.batches: dict[int, AdmitBatch] = {}
        self.contents: list[tuple[int, int]] = []  # (content, page), in the order of their arrival
        self._entries = 0
        self._expected: list[QueuedUrl] = []
        self._offered: set[int] = set()

    @property
    def batch_number(self) -> int:
        return len(self.batches)

    def offer(self, urls: Iterable[QueuedUrl], edges: bytes = b"") -> None:
        """Append a batch to the inbox, and edges with it."""
        urls = list(urls)
        for url in urls:
            if url.flags & UNCHECKED or url.key not in self._offered:
                self._expected.append(url)
            if not url.flags & UNCHECKED:
                self._offered.add(url.key)
        self.offer_bytes(encode_batch(urls), edges)

    def offer_bytes(self, data: bytes, edges: bytes = b"") -> None:
        """Append anything to the inbox."""
        self._entries += 1
        self.inbox.append(InboxEntry(f"1700000000000-{self._entries}", data, edges))

    def offer_contents(self, rows: Iterable[tuple[int, int]]) -> None:
        """Append an entry with what pages contain: rows (content, page)."""
        self.contents += (rows := list(rows))
        self.offer_bytes(b"")
        self.inbox[-1] = self.inbox[-1]._replace(observed=pack_each(b"".join(pack_seen(*row) for row in rows)))

    def check_copies(self, partition: Partition) -> None:
        """Of the pages with a content, all but the first are copies of the first, and are counted once."""
        first: dict[int, int] = {}
        for content, page in self.contents:
            first.setdefault(content, page)
        expected = {(page, content, first[content]) for content, page in self.contents if page != first[content]}
        copies = read_copies(partition.state.tables["copies"])
        assert {tuple(copy) for copy in copies[["page", "content", "original"]].tolist()} == expected
        assert partition.manifest.counts.get("exact_copies", 0) == len(copies) == len(expected)

    def unread(self, partition: Partition, limit: int = 1 << 30) -> list[InboxEntry]:
        """Entries behind what the partition has folded."""
        after = int(partition.manifest.inbox_id.partition("-")[2])
        return [entry for entry in self.inbox if int(entry[0].partition("-")[2]) > after][:limit]

    def trim(self, partition: Partition) -> None:
        """Forget the entries that a durable manifest has folded."""
        upto = int(partition.committed.durable_inbox_id.partition("-")[2])
        self.inbox = [entry for entry in self.inbox if int(entry[0].partition("-")[2]) > upto]

    def bring_up(self, partition: Partition) -> None:
        """Do what an owner does with a partition just opened."""
        if partition.manifest.batch_number < self.batch_number:
            partition.fold_admitted({n: [u.key for u in b.urls] for n, b in self.batches.items()})
            assert partition.manifest.batch_number == self.batch_number
            assert partition.manifest.admitted == len(self.admitted)
        for batch in partition.committed.batches(self.batch_number):
            self.admit(batch)

    def admit(self, batch: AdmitBatch | None) -> None:
        """Take a batch as the script does."""
        if batch is None:
            return
        if batch.number <= self.batch_number:
            assert self.batches[batch.number] == batch, "a repeated batch is the same batch"
            return
        assert batch.number == self.batch_number + 1, "no batch is skipped"
        assert batch.first_seq == len(self.admitted), "sequence numbers are unbroken"
        assert batch.urls, "no batch is empty"
        self.batches[batch.number] = batch
        self.admitted += batch.urls
        self.hot.update(url.host for url in batch.urls)

    def fetch(self, count: int) -> None:
        """End up to `count` fetches of each host."""
        self.hot = Counter({host: n - count for host, n in self.hot.items() if n > count})

    def step(self, partition: Partition, room: int, limit: int = 1 << 30, extra_room: int | None = None) -> None:
        """One step, committed and admitted."""
        batch = partition.step(self.unread(partition, limit), room, self.hot, self.away, extra_room).batch
        before = self.hot.copy()
        self.admit(batch)
        for host, hot_max in self.away.items():
            assert self.hot[host] <= max(before[host], hot_max), f"{host} is away, and gets more than its next try"

    def drain(self, partition: Partition, host_hot_max: int) -> None:
        """Step until nothing waits, fetching all that is hot in between; then check all promises."""
        self.away = {}
        for _ in range(len(self._expected) + 100):  # at worst one URL a step, of one host with room for one
            if not self.unread(partition) and not partition.state.waiting:
                break
            self.fetch(host_hot_max)
            self.step(partition, room=50)
        self.check_complete()

    def check_complete(self) -> None:
        """Everything offered was admitted, once, and in order."""
        assert Counter(map(_name, self.admitted)) == Counter(map(_name, self._expected))
        assert _by_queue(self.admitted) == _by_queue(self._expected)


def _name(url: QueuedUrl) -> tuple[int, bytes]:
    return url.key, url.body


def _by_queue(urls: Iterable[QueuedUrl]) -> dict[tuple[str, int], list[bytes]]:
    queues: dict[tuple[str, int], list[bytes]] = defaultdict(list)
    for url in urls:
        queues[url.host, level_of(url.priority)].append(url.body)
    return dict(queues)
