"""Whether anything has happened in a crawl: who would look again at all of it asks here first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigcrawl.scheduler.crawl.membership import Membership
    from bigcrawl.scheduler.node.exchange import UrlExchange
    from bigcrawl.scheduler.node.outbox import Outbox
    from bigcrawl.scheduler.owner.news import News
    from bigcrawl.scheduler.records.held_urls import HeldUrls

_REPORTED = ("pages", "held", "outbox", "partitions", "paused")

STALE_MS = 60_000  # what is not noticed here is found by then


class Activity:
    """What has happened on this node, and what others report."""

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
