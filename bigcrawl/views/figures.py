"""Collects the figures of a crawl for a report, from Redis and the partitions' files."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.scheduler.budgets.in_degrees import LOWEST, InDegreeCounts, sum_published
from bigcrawl.scheduler.budgets.policies import make_policy
from bigcrawl.scheduler.crawl.history import read_history
from bigcrawl.scheduler.crawl.membership import MAY_REPEAT
from bigcrawl.scheduler.crawl.survey import survey
from bigcrawl.scheduler.records.outcomes import HEADS
from bigcrawl.views.counted import NothingCountedError, counts_reader
from bigcrawl.views.errors import read_errors
from bigcrawl.views.newest_files import begun_partitions
from bigcrawl.views.plds import TopPld, read_files, top_plds
from bigcrawl.views.status import status_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Collection

    from bigcrawl.config import Config
    from bigcrawl.views.opened_crawl import OpenedCrawl

Columns = dict[str, list[float | None]]

ERRORS_MAX: Final = 50
TOP: Final = 50
PARTITIONS_MAX: Final = 4_096
"""If a crawl has more partitions, only the files of listed PLDs are read, and nothing is summed over all files."""


class PldFigures(NamedTuple):
    """The figures of PLDs.

    Attributes:
        top: the `TOP` PLDs with the most pages.
        sampled: the pages and the in-degree (None if unknown) of each PLD in a uniform sample.
        linked: how many PLDs of the whole crawl there are by the bit length of their in-degree, from 1 on.
        edges: how many pairs of PLDs are linked; None if files are missing.
        unread: how many partitions' files could not be read.
        mean_budget: URLs that a PLD may have in a turn, by the policy; None without budgets.
        turns: of the partition with most, how many take URLs after the current one; None without files.
    """

    top: list[TopPld]
    sampled: list[tuple[int, int | None]]
    linked: dict[int, int]
    edges: int | None
    unread: int
    mean_budget: float | None = None
    turns: int | None = None


@dataclass(frozen=True, slots=True)
class CrawlFigures:
    """The figures of a crawl at `time_s`, Unix seconds.

    Attributes:
        status: what `scrapy frontier status --json` prints.
        counts: the sums of all partitions' counters.
        history: the samples, column by column.
        counted: the sum of all nodes' tallies.
        unreadable: how many nodes' tallies could not be read.
        may_repeat: upper bound on URLs fetched twice because nodes died.
        host_records: hosts whose robots.txt rules Redis has, some of which may have expired.
    """

    config: Config
    time_s: float
    status: dict[str, Any]
    counts: Counter[str]
    history: Columns
    counted: Any
    unreadable: int
    may_repeat: int
    errors: list[dict[str, Any]]
    plds: PldFigures
    host_records: int = 0

    def sum_of(self, prefix: str) -> int:
        return sum(count for name, count in self.counts.items() if name.startswith(prefix))

    @property
    def pages(self) -> int:
        """How many URLs ended with an answer, of any status."""
        return self.sum_of("status:")

    @property
    def requests(self) -> int:
        """How many requests were sent, including those for robots.txt, those by HEAD, and repeated tries."""
        heads = sum(self.counts[counter] for counter in HEADS)
        return self.pages + self.sum_of("error:") + self.sum_of("retried:") + self.counts["robots"] + heads


async def gather_figures(crawl: OpenedCrawl) -> CrawlFigures:
    """Gather a crawl's figures, by some ten Redis commands. Raises NothingCountedError without a counting feature."""
    if (counts_of := counts_reader()) is None:
        raise NothingCountedError
    status = await status_of(crawl)
    seen = await survey(crawl.client, crawl.config.crawl.name, crawl.partitions)
    history = await read_history(crawl.client, crawl.config.crawl.name)
    counted, unreadable = await counts_of.read_counted(crawl.client, crawl.config.crawl.name)
    errors = await read_errors(crawl)
    may_repeat, published = await crawl.client.commands(
        [("HGET", crawl.crawl_keys.crawl, MAY_REPEAT), ("HVALS", crawl.crawl_keys.in_degrees)]
    )
    counts, _ = sum_published(published)
    begun = await begun_partitions(crawl)
    plds = await asyncio.to_thread(_read_plds, crawl, counted, counts, begun)
    keys = [partition_keys(crawl.config.crawl.name, number) for number in begun]
    records = await crawl.client.commands([("ZCARD", each.records) for each in keys])
    return CrawlFigures(
        config=crawl.config,
        time_s=time.time(),
        status=status,
        counts=seen.counts,
        history=history,
        counted=counted,
        unreadable=unreadable,
        may_repeat=max(0, int(may_repeat or 0)),
        errors=errors[:ERRORS_MAX],
        plds=plds,
        host_records=sum(records),
    )


def _read_plds(crawl: OpenedCrawl, counted: Any, counts: InDegreeCounts, begun: Collection[int]) -> PldFigures:
    """Look up the in-degrees of the counted PLDs. `begun` are the partitions with files on any machine."""
    top = counted.pages_by_pld.rows()[:TOP]
    names = {row.name for row in top} | counted.sampled_plds.counts.keys()
    files = read_files(crawl, names, range(crawl.partitions) if crawl.partitions <= PARTITIONS_MAX else ())
    unread = len(set(begun) - files.partitions.keys())
    linked: dict[int, int] = {}
    for lowest, count in zip(LOWEST.tolist(), counts.by_bin.tolist(), strict=False):
        linked[lowest.bit_length()] = linked.get(lowest.bit_length(), 0) + count
    return PldFigures(
        top_plds(crawl, top, files.in_degrees, counts),
        [(pages, files.in_degrees.get(name)) for name, pages in counted.sampled_plds.counts.items()],
        linked,
        sum(found.edges for found in files.partitions.values()) if not unread else None,
        unread,
        _mean_budget(crawl.config, counts, counted.plds.count),
        max((found.turns for found in files.partitions.values()), default=None),
    )


def _mean_budget(config: Config, counts: InDegreeCounts, plds: int) -> float | None:
    """Return the mean of the policy's budgets over all PLDs, of which some have no in-links."""
    policy = make_policy(config.budget, counts)
    if policy is None:
        return None
    degrees, by_bin = LOWEST[:-1].astype(np.uint32), counts.by_bin.copy()
    by_bin[0] = max(plds - counts.total, 1 - counts.total, 0)
    budgets = policy.budgets(np.zeros(len(degrees), dtype=KEY_TYPE), degrees)
    return float(budgets.astype(np.int64) @ by_bin) / int(by_bin.sum())
