"""The progress of the crawl as one node knows it: its pages, and its end."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from bigcrawl.scheduler.crawl.survey import survey

if TYPE_CHECKING:
    from bigcrawl.clock import Clock
    from bigcrawl.config import CrawlConfig
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.membership import Membership
    from bigcrawl.scheduler.crawl.survey import FinishCheck, Survey
    from bigcrawl.scheduler.node.exchange import UrlExchange
    from bigcrawl.scheduler.node.outbox import Outbox
    from bigcrawl.scheduler.owner.news import News
    from bigcrawl.scheduler.records.held_urls import HeldUrls

_REPORTED = ("pages", "held", "outbox", "partitions", "paused")

STALE_MS = 60_000  # what is not noticed here is found by then


class Activity:
    """What has happened on this node, and what others report: whoever would look at the whole crawl asks here first."""

    def __init__(
        self, news: News, held: HeldUrls, outbox: Outbox, exchange: UrlExchange, membership: Membership
    ) -> None:
        self._news = news
        self._held = held
        self._outbox = outbox
        self._exchange = exchange
        self._membership = membership

    def __repr__(self) -> str:
        return f"<Activity {self.mark!r}>"

    @property
    def mark(self) -> tuple[object, ...]:
        """Differs from an earlier one if anything has happened since."""
        reports = self._membership.reports.items()
        others = [(node, *map(report.get, _REPORTED)) for node, report in reports if node != self._membership.node]
        return self._news.noted, len(self._held), self._outbox.offered, self._exchange.pages, others


class CrawlProgress:
    """The crawl's pages and its end.

    Attributes:
        is_finished: whether no node has anything left to do.
        pages_before: pages of the whole crawl when it was last surveyed.
        last: the last survey; None before the first.
    """

    def __init__(
        self,
        crawl: CrawlConfig,
        client: RedisClient,
        clock: Clock,
        exchange: UrlExchange,
        finish: FinishCheck,
        activity: Activity,
    ) -> None:
        self._clock = clock
        self._activity = activity
        self._survey_mark: tuple[object, ...] = ()  # of the activity before the last survey
        self._survey_ms = 0
        self._crawl = crawl
        self._client = client
        self._exchange = exchange
        self._finish = finish
        self._ended_too_soon = False
        self._pages_surveyed = 0  # never more than Redis has counted, whatever is under way
        self._pages_counted = 0  # of this node's pages, those in `pages_before` already
        self.is_finished = False
        self.pages_before = 0
        self.last: Survey | None = None

    def __repr__(self) -> str:
        return f"<CrawlProgress pages={self.pages} finished={self.is_finished}>"

    # --- pages

    @property
    def pages(self) -> int:
        """Pages of the whole crawl, as far as this node knows."""
        return self.pages_before + self._exchange.pages - self._pages_counted

    @property
    def has_reached_max(self) -> bool:
        """Whether BIGCRAWL_MAX_PAGES pages have been fetched, by the last survey.

        `pages` may count a page twice if it is acknowledged during a survey. That is good enough to take no more URLs,
        but not to stop.
        """
        return 0 < self._crawl.pages_max <= self._pages_surveyed

    def pages_left(self, nodes: int) -> int:
        """This node's share of the pages that BIGCRAWL_MAX_PAGES still allowed at the last survey."""
        left = self._crawl.pages_max - self.pages_before
        return ceil(left / nodes) - (self._exchange.pages - self._pages_counted)

    async def survey(self) -> Survey:
        """Survey the whole crawl."""
        mark, now_ms = self._activity.mark, self._clock.monotonic_ms()
        self.last = await survey(self._client, self._crawl.name, self._crawl.partitions)
        self._survey_mark, self._survey_ms = mark, now_ms
        return self.last

    async def survey_lately(self) -> Survey:
        """The last survey, if nothing has happened since and it is not old; otherwise a new one."""
        is_new = self._survey_mark == self._activity.mark and self._clock.monotonic_ms() < self._survey_ms + STALE_MS
        return self.last if self.last is not None and is_new else await self.survey()

    async def count_pages(self) -> None:
        """Survey the crawl's pages, if their number is limited."""
        if self._crawl.pages_max:
            counted = self._exchange.pages
            seen = await self.survey()
            self.pages_before = self._pages_surveyed = seen.pages
            self._pages_counted = counted

    # --- the end

    async def begin(self, seen: Survey) -> None:
        """Begin with the survey of a node that joins. The crawl may be finished already."""
        self.pages_before = self._pages_surveyed = seen.pages
        self.is_finished = seen.is_empty and not seen.holdup and await self._finish.is_announced(seen)

    def note_end(self, *, is_certain: bool) -> None:
        """A look has found nothing left, and has told all nodes. That was wrong if URLs came up meanwhile."""
        self.is_finished = is_certain
        self._ended_too_soon = not is_certain

    def go_on(self) -> None:
        """There is a URL again: an idle spider has got more to do."""
        self.is_finished = False
        self._ended_too_soon = True

    def note_start(self, *, is_done: bool) -> None:
        """There are start requests to run, unless they are done."""
        self.is_finished = self.is_finished and is_done

    async def take_back_end(self) -> None:
        """If all nodes were told too soon that the crawl is finished, tell them that it goes on."""
        if self._ended_too_soon:
            await self._finish.take_back()
            self._ended_too_soon = False
