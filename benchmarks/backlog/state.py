"""The state that the crawl begins with: runs of keys that were seen, and queues of URLs that wait."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from benchmarks.beast.web import Flat
from benchmarks.merges.prefill import prefill, run_sizes
from bigcrawl.links import Links
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.queued_url import encode_batch
from bigcrawl.url.key import PUBLIC_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl.scheduler.records.queued_url import QueuedUrl

PARTITIONS: Final = 256
PLDS: Final = 100_000
HOSTS_A_PLD: Final = 5
FLUSHES: Final = 2  # of a partition's fresh keys, before its URLSeen is merged whole
STEP_URLS: Final = 20_000
BATCH_URLS: Final = 2_000
DURABLE_STEPS: Final = 8
BUDGET: Final = 10  # what a PLD of low rank has by default


def hosts() -> list[str]:
    """All hosts, those of a PLD side by side."""
    return [f"h{host}.d{pld}.com" for pld in range(PLDS) for host in range(HOSTS_A_PLD)]


def fill(directory: Path, number: int, seen: int, waiting: int) -> None:
    """Write one partition of `PARTITIONS`, its share of so many URLs seen, besides those that wait.

    Cost: 20 us a waiting URL, 0.1 us one seen.
    """
    prefill(directory, run_sizes(seen // PARTITIONS, FLUSHES), number)
    partition = Partition.open(directory, 2, PartitionLimits(), budgets=Flat(BUDGET), pld_of=pld_of)
    for step, urls in enumerate(_steps(hosts_of(number), waiting // PARTITIONS), 1):
        parts = [urls[at : at + BATCH_URLS] for at in range(0, len(urls), BATCH_URLS)]
        # Ids below any that Redis will give.
        partition.step([InboxEntry(f"{step}-{at}", encode_batch(part)) for at, part in enumerate(parts)], 0, {})
        if step % DURABLE_STEPS == 0:
            partition.committed.make_durable()
    partition.committed.make_durable()


def pld_of(host: str) -> str:
    """The PLD of one of these hosts."""
    return host[host.index(".") + 1 :]


def hosts_of(number: int) -> list[str]:
    """The hosts of a partition."""
    return _hosts_by_partition()[number]


@cache
def _hosts_by_partition() -> list[list[str]]:
    found: list[list[str]] = [[] for _ in range(PARTITIONS)]
    for host in hosts():
        found[PUBLIC_KEYS.partition_of(pld_of(host), PARTITIONS)].append(host)
    return found


def _steps(names: list[str], count: int) -> Iterator[list[QueuedUrl]]:
    """URLs in the order in which a crawl would find them: host after host, and again."""
    encode = links_encoder(Links(()), 3)
    for start in range(0, count, STEP_URLS):
        numbers = range(start, min(start + STEP_URLS, count))
        texts = [f"http://{names[number % len(names)]}/archive/2024/page-{number}.html" for number in numbers]
        yield [encode(key, text) for key, text in zip(map(PUBLIC_KEYS.of_url, texts), texts, strict=True)]
