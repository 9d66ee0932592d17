"""What Scrapy's components use of the frontier.

`scheduler.scheduler.Scheduler` implements it, and for stored pages `stored.scheduler.StoredScheduler`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from bigcrawl.config import Config
    from bigcrawl.exceptions import BigcrawlError
    from bigcrawl.politeness.addresses import AddressGuard
    from bigcrawl.scheduler.adapter.spider_flow import SpiderFlow
    from bigcrawl.scheduler.adapter.spider_intake import SpiderIntake
    from bigcrawl.scheduler.adapter.spider_start import SpiderStart
    from bigcrawl.scheduler.adapter.started_requests import StartedRequests
    from bigcrawl.scheduler.crawl.survey import Survey
    from bigcrawl.scheduler.node.node import Node


class Frontier(Protocol):
    """A crawler's frontier.

    Attributes:
        config: the settings.
        guard: says which addresses are closed.
        started: the requests that were handed out. The downloader asks about them, and reports what became of them.
        intake: takes a spider's links and requests.
        flow: makes a spider wait.
        start: says whether a spider is to make its start requests, and is told when they are done.
        node: this process as a member of the crawl; None until it has joined, and always if pages are stored ones.
        last_survey: the last survey of the whole crawl; None before the first.
    """

    config: Config
    guard: AddressGuard
    started: StartedRequests
    intake: SpiderIntake
    flow: SpiderFlow
    start: SpiderStart
    node: Node | None
    last_survey: Survey | None

    @property
    def is_resumed(self) -> bool:
        """Whether the crawl existed before this process joined it."""

    @property
    def is_open(self) -> bool:
        """Whether it takes and gives URLs: it has joined its crawl, or found its stored pages."""

    def pld_of(self, host: str) -> str:
        """The pay-level domain of a host, once it is open."""

    def fail(self, error: BigcrawlError) -> None:
        """End the crawl because of an error that waiting does not solve: one line, and exit status 1."""
