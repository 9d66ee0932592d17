"""One PLD with nearly all there is, on very many hosts, in one partition with many ordinary PLDs."""

from __future__ import annotations

import resource
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import mmh3

from benchmarks.beast import say
from benchmarks.beast.web import Flat
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.queued_url import QueuedUrl, encode_batch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUDGET = 10
URLS_A_PLD = 3
URLS_A_HOST = 10
STEP_URLS = 20_000  # ten full batches
ROOM = 1_000  # what is fetched meanwhile: one in twenty of what is found
BATCH_URLS = 2_000


class Wait(NamedTuple):
    """How long a URL of an ordinary PLD waited: in steps, and in pages admitted meanwhile."""

    steps: int
    pages: int


class Scale:
    """The run: what is offered, and when what came out."""

    def __init__(self, directory: Path, urls: int, plds: int) -> None:
        self._directory = directory
        self._urls = urls
        self._plds = plds
        self._limits = PartitionLimits()
        self._arrived: dict[int, tuple[int, int]] = {}
        self.partition = self._open(1)
        self.waits: list[Wait] = []
        self.admitted: Counter[str] = Counter()
        self.steps = 0
        self.longest_step = 0.0

    def _open(self, epoch: int) -> Partition:
        return Partition.open(self._directory, epoch, self._limits, budgets=Flat(BUDGET), pld_of=pld_of)

    def reopen(self) -> float:
        """Open what is there in the next epoch, as after kill -9; returns the seconds that takes."""
        started = time.perf_counter()
        self.partition = self._open(self.partition.manifest.epoch + 1)
        return time.perf_counter() - started

    def load(self) -> None:
        """Offer everything, ordinary URLs spread evenly among the others, while some are fetched."""
        batch: list[QueuedUrl] = []
        for url in self._all_urls():
            batch.append(url)
            if len(batch) == STEP_URLS:
                self.step(batch)
                batch = []
        self.step(batch)

    def step(self, urls: list[QueuedUrl]) -> int:
        """Fold URLs and fetch; returns how many were admitted."""
        self.steps += 1
        total = self.admitted.total()
        for url in urls:
            if url.host[0] == "s":
                self._arrived[url.key] = (self.steps, total)
        parts = [urls[at : at + BATCH_URLS] for at in range(0, len(urls), BATCH_URLS)]
        inbox = [(f"{self.steps}-{at}", encode_batch(part)) for at, part in enumerate(parts)]
        started = time.thread_time()
        batch = self.partition.step(inbox, ROOM, {}).batch
        self.longest_step = max(self.longest_step, time.thread_time() - started)
        for place, url in enumerate(batch.urls if batch else ()):
            self.admitted[url.host[0]] += 1
            if url.key in self._arrived:
                step, pages = self._arrived.pop(url.key)
                self.waits.append(Wait(self.steps - step, total + place - pages))
        self.partition.committed.forget_batches(self.partition.manifest.batch_number)
        if self.steps % 20 == 0:
            self.partition.committed.make_durable()
        return len(batch.urls) if batch else 0

    @property
    def missing(self) -> int:
        """URLs of ordinary PLDs that are not admitted yet."""
        return len(self._arrived)

    def _all_urls(self) -> Iterator[QueuedUrl]:
        ordinary = self._plds * URLS_A_PLD
        every = max(1, self._urls // ordinary)
        made = 0
        for number in range(self._urls):
            yield new_url(f"x{number // URLS_A_HOST}.farm.example", number)
            if number % every == 0 and made < ordinary:
                yield new_url(f"s{made % self._plds}.example", made)
                made += 1


def run_scale(directory: Path, urls: int, plds: int) -> None:
    """Load, go on, open again, and print what was seen."""
    scale = Scale(directory / "p", urls, plds)
    started, before = time.perf_counter(), rss_mib()
    scale.load()
    say(f"{urls:,} URLs of one PLD on {urls // URLS_A_HOST:,} hosts, {plds * URLS_A_PLD:,} of {plds:,} others")
    loaded = time.perf_counter() - started
    state = scale.partition.state.turns.state
    say(f"offered in {loaded:,.0f} s, {1e6 * loaded / urls:.1f} us a URL; {scale.partition!r}")
    say(f"turn {state.turn}, window {state.window}, quantum {state.quantum}; {state.reread_ever:,} re-read")
    say(f"memory {before} MiB before, {rss_mib()} MiB at most since; longest step {scale.longest_step:.2f} s CPU")
    say(f"opened again in {scale.reopen():.2f} s; {len(scale.partition.committed.manifest.files_needed())} files")
    say_waits(scale, "while loading")
    scale.longest_step, rest = 0.0, scale.missing
    read, admitted, steps, started = (
        scale.partition.state.turns.state.reread_ever,
        scale.admitted.total(),
        scale.steps,
        time.perf_counter(),
    )
    while scale.steps < steps + 4_000 and scale.admitted.total() - admitted < 500_000:
        scale.step([])
    pages = scale.admitted.total() - admitted
    seconds = time.perf_counter() - started
    say(
        f"then {pages:,} pages in {scale.steps - steps:,} steps, {seconds:,.0f} s; "
        f"{(scale.partition.state.turns.state.reread_ever - read) / max(pages, 1):.1f} re-read a page, "
        f"longest step {scale.longest_step:.2f} s CPU; of others {rest:,} waited, {scale.missing:,} do now"
    )
    state = scale.partition.state.turns.state
    say(f"turn {state.turn}, window {state.window}, quantum {state.quantum}; memory {rss_mib()} MiB at most")
    say_waits(scale, "in all")


def say_waits(scale: Scale, when: str) -> None:
    """How soon ordinary URLs were admitted."""
    waits = sorted(scale.waits, key=lambda wait: wait.pages)
    if waits:
        median, last = waits[len(waits) // 2], waits[-1]
        say(
            f"{when}: {scale.admitted['x']:,} pages of the one, {len(waits):,} of others, which waited for "
            f"{median.pages:,} pages ({median.steps} steps) in the median, {last.pages:,} ({last.steps}) at most"
        )


def new_url(host: str, number: int) -> QueuedUrl:
    """A URL of its own for each host and number."""
    path = f"http://{host}/page/{number}"
    return QueuedUrl(mmh3.hash64(path, signed=False)[0], host, 0, 0, path.encode())


def pld_of(host: str) -> str:
    """All of the farm is one PLD."""
    return "farm.example" if host[0] == "x" else host


def rss_mib() -> int:
    """The most memory this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
