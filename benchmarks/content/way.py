"""What a page pays for content-seen on its whole way but the network: noted, packed, and merged by its partitions."""

from __future__ import annotations

import random
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.content.pages import page
from bigcrawl.features.copies.fold import Copies
from bigcrawl.features.copies.near_page import NearContents
from bigcrawl.features.copies.page import PageContents
from bigcrawl.features.mirrors.fold import Mirrors
from bigcrawl.features.mirrors.page import ContentSamples
from bigcrawl.features.mirrors.verdicts import MirrorRules
from bigcrawl.redisdb.scripts import EndedUrl
from bigcrawl.scheduler.handout.observers import Observer, Observers
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.held import HeldUrl
from bigcrawl.scheduler.records.held_urls import HeldUrls
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.member import Member
from bigcrawl.scheduler.records.observed import KINDS, ObservedRows, rows_by_partition
from tests.support.observed_rows import pack_each
from tests.support.observing import node_side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.scheduler.partition.fold.feature import Feature

PARTITIONS: Final = 16
BODIES: Final = 64
PAGES_A_BATCH: Final = 640  # what a node fetches in two seconds, or in one step of its partitions
BATCHES: Final = 25
BATCHES_A_HINT: Final = 5  # hints wait ten seconds by default
PLDS: Final = 200  # of the pages of a batch
NEAR_PART: Final = 10
_LETTERS: Final = b"etoinlrdumcfw"  # of words, and of no tag's name


class Way(NamedTuple):
    """Microseconds of CPU a page."""

    noted: float
    packed: float
    merged: float

    @property
    def whole(self) -> float:
        """All of it."""
        return sum(self)


class _Rows:
    """Rows that wait, by partition, as in an outbox."""

    def __init__(self) -> None:
        self.offered = 0
        self.waiting: dict[int, list[bytearray]] = defaultdict(lambda: [bytearray() for _ in KINDS])
        self.hints: list[ObservedRows] = []

    def offer_rows(self, rows: ObservedRows) -> None:
        self.offered += 1
        partition, packed, kind = rows
        self.waiting[partition][kind] += packed

    def offer_hint(self, rows: ObservedRows) -> None:
        self.hints.append(rows)

    def take(self, *, with_hints: bool) -> dict[int, bytes]:
        if with_hints:
            for row in self.hints:
                self.offer_rows(row)
            self.hints.clear()
        packed = {number: pack_each(*rows) for number, rows in self.waiting.items()}
        self.waiting.clear()
        return packed


def measure(
    pages: Sequence[bytes] = (), *, has_sketches: bool = False, has_mirrors: bool = False, plds_alike: int = 1
) -> Way:
    """Take pages to 16 partitions, batch by batch; the best batch counts.

    Args:
        pages: taken in turn; if there are none, pages of 21 KB are made, a tenth of them near copies.
        has_sketches: whether near copies are looked for.
        has_mirrors: whether mirrors are.
        plds_alike: how many PLDs have each content.
    """
    bodies = [page(seed) for seed in range(BODIES)]
    rows, held = _Rows(), HeldUrls()
    observed: list[Observer] = [(NearContents if has_sketches else PageContents)(PARTITIONS)]
    features: list[Feature] = [Copies()]
    if has_mirrors:
        observed.append(ContentSamples(node_side(rows, {"BIGCRAWL_PARTITIONS": PARTITIONS})))
        features.append(Mirrors(MirrorRules(0.8, 20)))
    observers = Observers(held, rows, observed)
    noted: list[float] = []
    packed: list[float] = []
    merged: list[float] = []
    with tempfile.TemporaryDirectory(prefix="bigcrawl-bench-") as directory:
        limits = PartitionLimits(host_hot_max=1, features=tuple(features))
        partitions = [Partition.open(Path(directory) / f"p{n}", 1, limits) for n in range(PARTITIONS)]
        for batch in range(BATCHES):
            urls = [_url(batch * PAGES_A_BATCH + n + 1) for n in range(PAGES_A_BATCH)]
            fetched = (
                [pages[url.seq % len(pages)] for url in urls]
                if pages
                else [
                    _page(bodies[n // plds_alike % BODIES], (url.seq - 1) // plds_alike) for n, url in enumerate(urls)
                ]
            )
            for url in urls:
                held.add(url)
            marks = [time.process_time_ns()]
            for url, body in zip(urls, fetched, strict=True):
                observers.record_page(url, body, is_text=True)
            marks.append(time.process_time_ns())
            for url in urls:
                held.end(url, EndedUrl(url.seq, 0), 0)
            marks.append(time.process_time_ns())
            observers.send_safe()
            entries = rows.take(with_hints=batch % BATCHES_A_HINT == BATCHES_A_HINT - 1)
            marks.append(time.process_time_ns())
            for number, data in entries.items():
                step = partitions[number].step([InboxEntry(f"{batch + 1}-0", observed=data)], 0, {})
                for kind, told in step.hints:
                    for row in rows_by_partition(kind, told, PARTITIONS):
                        rows.offer_hint(row)
            marks.append(time.process_time_ns())
            held.forget(urls, 0, 0)
            for times, at in (noted, 0), (packed, 2), (merged, 3):
                times.append((marks[at + 1] - marks[at]) / PAGES_A_BATCH / 1_000)
    # A merge that writes runs costs more than others, so the mean of all counts there.
    return Way(min(noted), min(packed), sum(merged) / len(merged))


def _page(body: bytes, number: int) -> bytes:
    """A page of other words than those before, so that it is sketched; each tenth is a near copy of one before."""
    letters = list(_LETTERS)
    random.Random(number - (number % NEAR_PART == 0) * BODIES).shuffle(letters)
    return b"%b<p>%x" % (body.translate(bytes.maketrans(_LETTERS, bytes(letters))), number)


def _url(number: int) -> HeldUrl:
    fields, host = Member(number, number, 0, 0, 0, b""), f"site{number % PLDS}.example"
    return HeldUrl(0, host, 0, b"%d:" % number, fields, f"http://{host}/", f"http://{host}")
