"""`python -m benchmarks.drum_cost.frontier_check`: alpha of the frontier's own URL-seen check. Options: --help.

Partitions fold inboxes, each with URLSeen, queues and manifest. A step checks what its inbox has gathered, so it looks
up few keys in large runs, where DRUM gathers many. Text of URLs that wait for a check is in Redis (`redis_log`); that
of new ones is in the partitions' queues, compressed. As everywhere here, the page cache spares nothing.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from benchmarks.crawl.report import aligned, say
from benchmarks.drum_cost.counting import CountingFiles, Moved
from benchmarks.drum_cost.trial import WrongVerdictsError
from benchmarks.drum_cost.urls import TEXT_BYTES, digest_of, offered
from bigcrawl.drum.files import DiskFiles
from bigcrawl.links import Links
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.body import look_at_link
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.queued_url import encode_batch
from bigcrawl.url.key import UrlKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.drum_cost.urls import Batch
    from bigcrawl.drum.files import Files

PARTITIONS: Final = 4
STEPS: Final = (2_500, 25_000)
"""URLs of a partition's step: 700 pages a second bring as many to one of four in a quarter of a second, and in 2.5."""

_LIMITS: Final = PartitionLimits()
_ADMITTED_AT_ONCE: Final = 100_000


class FoundNew:
    """How many URLs were found new, and which; see `UniqueQueue`."""

    def __init__(self) -> None:
        self.count = 0
        self.digest = 0

    def add(self, urls: Sequence[str]) -> None:
        """Count URLs, all of one length."""
        texts = np.frombuffer("".join(urls).encode(), dtype=np.uint8).reshape(-1, TEXT_BYTES)
        self.count += len(urls)
        self.digest = (self.digest + digest_of(texts)) % 2**64


class FrontierCheck:
    """Partitions on counted files; nothing is admitted until the end, and what is then is not counted."""

    def __init__(self, directory: Path, files: Files, step_urls: int) -> None:
        self._step_urls = step_urls
        files.make_directory(directory)
        self._directories = [directory / f"p{number}" for number in range(PARTITIONS)]
        self._partitions = [Partition.open(each, 1, _LIMITS, files) for each in self._directories]
        self._encode = links_encoder(Links(()), 3)
        self.queue = FoundNew()
        self.steps = 0

    def offer(self, batch: Batch) -> None:
        """Step each partition on its part of the URLs."""
        texts = batch.texts.tobytes().decode()
        urls = [texts[at : at + TEXT_BYTES] for at in range(0, len(texts), TEXT_BYTES)]
        for number, partition in enumerate(self._partitions):
            mine = np.flatnonzero(batch.keys % np.uint64(PARTITIONS) == number).tolist()
            for start in range(0, len(mine), self._step_urls):
                found = [
                    self._encode(UrlKey(int(batch.keys[at])), urls[at]) for at in mine[start : start + self._step_urls]
                ]
                self.steps += 1
                partition.step([InboxEntry(f"{self.steps}-0", encode_batch(found))], 0, {})

    def finish(self) -> None:
        """Read what waits, in a later epoch and not counted."""
        del self._partitions[:]
        for directory in self._directories:
            partition = Partition.open(directory, 2, PartitionLimits(host_hot_max=1 << 30), DiskFiles())
            while (batch := partition.step([], _ADMITTED_AT_ONCE, {}).batch) is not None:
                self.queue.add([look_at_link(url.body)[0] for url in batch.urls])


class Cost(NamedTuple):
    """Of a run: steps, and what the kinds of file moved, as parts of alpha: URLSeen, manifests and queues."""

    steps: int
    seen: float
    manifests: float
    queues: float

    @property
    def alpha(self) -> float:
        """Bytes read and written for each byte of text offered, Redis apart."""
        return self.seen + self.manifests + self.queues


def measure(count: int, step_urls: int, directory: Path) -> Cost:
    """Offer `count` URLs in steps of so many.

    Raises:
        WrongVerdictsError: other URLs were found new than those that are.
    """
    files, unique, digest = CountingFiles(), 0, 0
    check = FrontierCheck(directory, files, step_urls)
    for batch in offered(count, PARTITIONS * step_urls):
        unique += int(batch.is_new.sum())
        digest = (digest + digest_of(batch.texts[batch.is_new])) % 2**64
        check.offer(batch)
    moved = files.by_kind()
    check.finish()
    if (check.queue.count, check.queue.digest) != (unique, digest):
        raise WrongVerdictsError(f"{check.queue.count} URLs were found new, not {unique}, or others")
    parts = (moved.get(kind, Moved(0, 0)).both / (count * TEXT_BYTES) for kind in ("run", "MANIFEST", "queue"))
    return Cost(check.steps, *parts)


def main() -> None:
    """Measure, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drum_cost.frontier_check", description=__doc__)
    parser.add_argument("--keys", type=float, nargs="+", default=[1e5, 3e5, 1e6], help="URLs; default 1e5 3e5 1e6")
    options = parser.parse_args()
    rows: list[tuple[str, ...]] = [("URLs", "of a step", "steps", "URLSeen", "manifests", "queues", "alpha")]
    for count in map(int, options.keys):
        for step_urls in STEPS:
            with tempfile.TemporaryDirectory(prefix="bigcrawl-bench-") as directory:
                cost = measure(count, step_urls, Path(directory, "partitions"))
            parts = (cost.seen, cost.manifests, cost.queues, cost.alpha)
            rows.append((f"{count:,}", f"{step_urls:,}", f"{cost.steps:,}", *(f"{part:.3f}" for part in parts)))
    say(*aligned(rows))


if __name__ == "__main__":
    main()
