"""The crawl's pages and its end, as one node knows them.

A crawl that has been slower than BIGCRAWL_CLOSE_RATE for a while is closed, by the rates in all heartbeats. Pauses,
lower speed limits and times without Redis do not count. Source: PolyBot §4.1.
"""

from __future__ import annotations

from collections import deque
from math import ceil
from typing import TYPE_CHECKING

from bigcrawl.scheduler.crawl.samples import Samples
from bigcrawl.scheduler.crawl.survey import FinishCheck, Survey, survey

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.config import CloseRateConfig
    from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl
    from bigcrawl.scheduler.crawl.membership import Membership
    from bigcrawl.scheduler.handout.handout import Handout
    from bigcrawl.scheduler.node.exchange import UrlExchange
    from bigcrawl.scheduler.node.outbox import Outbox
    from bigcrawl.scheduler.owner.owned_table import PendingWork
    from bigcrawl.scheduler.owner.ownership import Ownership
    from bigcrawl.scheduler.records.held_urls import HeldUrls

SAMPLES = 60
GAP_MS_MAX = 60_000  # after a longer gap the measurement starts again

REPORTED = ("pages", "held", "outbox", "partitions")

STALE_MS = 300_000
READS_AN_EVENT = 32  # partitions; a survey is taken again when as much has happened as it costs


class CloseRate:
    def __init__(self, config: CloseRateConfig) -> None:
        self._config = config
        self._samples: deque[tuple[int, float]] = deque()
        self._pages = 0.0
        self._looked_ms = 0

    def __repr__(self) -> str:
        return f"<CloseRate {self._config} samples={len(self._samples)}>"

    @property
    def is_on(self) -> bool:
        return self._config.pages_per_s > 0

    def record_rate(self, now_ms: int, rate: float, allowed: float) -> bool:
        """Record the current rate of all nodes, in pages per second.

        Return whether the crawl was too slow for the whole span.
        """
        since_ms = now_ms - self._looked_ms
        self._looked_ms = now_ms
        if not self._samples or since_ms > GAP_MS_MAX or allowed <= self._config.pages_per_s:
            self.begin(now_ms)
            return False
        self._pages += rate * since_ms / 1000
        samples, span_ms = self._samples, self._config.span_ms
        if now_ms - samples[-1][0] >= span_ms / SAMPLES:
            samples.append((now_ms, self._pages))
        while len(samples) > 1 and samples[1][0] <= now_ms - span_ms:
            samples.popleft()
        began_ms, before = samples[0]
        passed_ms = now_ms - began_ms
        return passed_ms >= span_ms and (self._pages - before) * 1000 < self._config.pages_per_s * passed_ms

    def begin(self, now_ms: int) -> None:
        self._samples.clear()
        self._samples.append((now_ms, self._pages))
        self._looked_ms = now_ms


class Activity:
    """Shows whether anything has happened since a mark, so that expensive surveys can be skipped."""

    def __init__(
        self, pending: PendingWork, held: HeldUrls, outbox: Outbox, exchange: UrlExchange, membership: Membership
    ) -> None:
        self._pending = pending
        self._held = held
        self._outbox = outbox
        self._exchange = exchange
        self._membership = membership

    def __repr__(self) -> str:
        return f"<Activity {self.mark!r}>"

    @property
    def mark(self) -> dict[tuple[str, str], int]:
        """Figures that change with any event here, or on other nodes according to their reports."""
        figures = self._pending.events, len(self._held), self._outbox.offered, self._exchange.pages
        here = {("", str(number)): figure for number, figure in enumerate(figures)}
        reports = self._membership.reports.items()
        others = [(node, report) for node, report in reports if node != self._membership.node]
        return here | {(node, name): report.get(name, 0) for node, report in others for name in REPORTED}

    def events_since(self, before: dict[tuple[str, str], int]) -> int:
        now = self.mark
        return sum(abs(now.get(each, 0) - before.get(each, 0)) for each in now.keys() | before.keys())


class CrawlProgress:
    def __init__(
        self, crawl: JoinedCrawl, ownership: Ownership, handout: Handout, outbox: Outbox, exchange: UrlExchange
    ) -> None:
        client, name, partitions = crawl.client, crawl.config.crawl.name, crawl.config.crawl.partitions
        budgets = ownership.crawl_budgets
        self._clock = crawl.clock
        self.finish = FinishCheck(client, name, partitions, lambda: budgets.current_mark, budgets.callbacks.has)
        self.activity = Activity(ownership.table.pending, handout.held, outbox, exchange, crawl.membership)
        spider = crawl.config.crawl.spider or ""
        self.samples = Samples(
            *(client, name, crawl.membership, spider),
            is_finished=lambda: self.is_finished,
            is_paused=lambda: handout.speed.speed.is_paused,
        )
        self._survey_mark: dict[tuple[str, str], int] = {}
        self._survey_ms = 0
        self._crawl = crawl.config.crawl
        self._client = client
        self._exchange = exchange
        self._ended_too_soon = False
        self._pages_surveyed = 0
        self._pages_counted = 0  # of this node's pages, those already in `pages_before`
        self.is_finished = False
        self.pages_before = 0
        self.last: Survey | None = None

    def __repr__(self) -> str:
        return f"<CrawlProgress pages={self.pages} finished={self.is_finished}>"

    @property
    def pages(self) -> int:
        return self.pages_before + self._exchange.pages - self._pages_counted

    @property
    def has_reached_max(self) -> bool:
        """Whether BIGCRAWL_MAX_PAGES is reached, by the last survey, which may count a page twice."""
        return 0 < self._crawl.pages_max <= self._pages_surveyed

    def pages_left(self, nodes: int) -> int:
        left = self._crawl.pages_max - self.pages_before
        return ceil(left / nodes) - (self._exchange.pages - self._pages_counted)

    async def survey(self) -> Survey:
        mark, now_ms = self.activity.mark, self._clock.monotonic_ms()
        self.last = await survey(self._client, self._crawl.name, self._crawl.partitions)
        self._survey_mark, self._survey_ms = mark, now_ms
        return self.last

    async def survey_lately(self) -> Survey:
        """Return the last survey if it is recent and little has happened since; otherwise a new one."""
        if self.last is None or self._clock.monotonic_ms() >= self._survey_ms + STALE_MS:
            return await self.survey()
        is_due = READS_AN_EVENT * self.activity.events_since(self._survey_mark) >= self._crawl.partitions
        return await self.survey() if is_due else self.last

    async def count_pages(self) -> None:
        if self._crawl.pages_max:
            counted = self._exchange.pages
            seen = await self.survey()
            self.pages_before = self._pages_surveyed = seen.pages
            self._pages_counted = counted

    async def begin(self, seen: Survey, hold_end: Callable[[int], bool] = lambda _: False) -> None:
        """Start from the survey of a joining node. The crawl may be finished, unless its end is being delayed."""
        self.pages_before = self._pages_surveyed = seen.pages
        is_finished = seen.is_empty and not seen.holdup and await self.finish.is_announced(seen)
        self.is_finished = is_finished and not hold_end(seen.counts["ended"])

    def record_end(self, *, is_certain: bool) -> None:
        """Record an announced end. It was premature if URLs have arrived meanwhile."""
        self.is_finished = is_certain
        self._ended_too_soon = not is_certain

    def go_on(self) -> None:
        self.is_finished = False
        self._ended_too_soon = True

    def record_start(self, *, is_done: bool) -> None:
        self.is_finished = self.is_finished and is_done

    async def revoke_end(self) -> None:
        if self._ended_too_soon:
            await self.finish.revoke_end()
            self._ended_too_soon = False
