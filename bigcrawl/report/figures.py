"""Gathers what a report says: counters, tallies and history from Redis, PLDs from the partitions' files."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.commands.looking.errors import read_errors
from bigcrawl.commands.looking.status import read_status
from bigcrawl.commands.opened_crawl import opened
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.report.plds import PldFigures, read_pld_figures
from bigcrawl.scheduler.budgets.in_degrees import sum_published
from bigcrawl.scheduler.crawl.history import read_history
from bigcrawl.scheduler.crawl.membership import MAY_REPEAT
from bigcrawl.scheduler.crawl.shared_tallies import read_tallies
from bigcrawl.scheduler.crawl.survey import survey
from bigcrawl.scheduler.rules.head_rules import HEADS

if TYPE_CHECKING:
    from collections import Counter

    from bigcrawl.config import Config
    from bigcrawl.report.rates import Columns
    from bigcrawl.tallies.tallies import Tallies

ERRORS_MAX: Final = 50


@dataclass(frozen=True, slots=True)
class Figures:
    """What is known of a crawl at `time_s`, Unix seconds.

    Attributes:
        config: the settings with which the report is made.
        status: as `scrapy frontier status --json`.
        counts: the counters of all partitions.
        history: the samples, column by column.
        tallies: what all nodes have counted.
        unreadable: of how many nodes it could not be read.
        may_repeat: how many URLs may have been fetched more than once because nodes died, at most.
        errors: what failed most, by reason and PLD.
        plds: what is known of PLDs.
    """

    config: Config
    time_s: float
    status: dict[str, Any]
    counts: Counter[str]
    history: Columns
    tallies: Tallies
    unreadable: int
    may_repeat: int
    errors: list[dict[str, Any]]
    plds: PldFigures

    def sum_of(self, prefix: str) -> int:
        """The sum of all counters that begin like this."""
        return sum(count for name, count in self.counts.items() if name.startswith(prefix))

    @property
    def pages(self) -> int:
        """URLs that ended with an answer, whatever its status."""
        return self.sum_of("status:")

    @property
    def requests(self) -> int:
        """Requests that were sent, those for robots.txt, those by HEAD and repeated tries included."""
        heads = sum(self.counts[counter] for counter in HEADS)
        return self.pages + self.sum_of("error:") + self.sum_of("retried:") + self.counts["robots"] + heads


async def gather(config: Config, server: str) -> Figures:
    """Gather the figures of a crawl.

    Cost: some ten Redis commands and 300 KB; the manifest of each partition, and some blocks of those with listed PLDs.

    Raises:
        ConfigError: there is no such crawl.
        TransientStoreError: Redis does not answer.
    """
    status = await read_status(config, server)
    keys = CrawlKeys(config.crawl.name)
    async with opened(config, server) as crawl:
        seen = await survey(crawl.client, config.crawl.name, crawl.partitions)
        history = await read_history(crawl.client, config.crawl.name)
        tallies, unreadable = await read_tallies(crawl.client, config.crawl.name)
        errors = await read_errors(crawl)
        may_repeat, published = await crawl.client.commands(
            [("HGET", keys.crawl, MAY_REPEAT), ("HVALS", keys.in_degrees)]
        )
        counts, _ = sum_published(published)
        plds = await asyncio.to_thread(read_pld_figures, crawl, tallies, counts)
    return Figures(
        config=config,
        time_s=time.time(),
        status=status,
        counts=seen.counts,
        history=history,
        tallies=tallies,
        unreadable=unreadable,
        may_repeat=max(0, int(may_repeat or 0)),
        errors=errors[:ERRORS_MAX],
        plds=plds,
    )
