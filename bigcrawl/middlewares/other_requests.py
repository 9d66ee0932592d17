from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.scheduler.adapter.registry import frontier_of

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler

    from bigcrawl.middlewares.robots import RobotsBesideFrontier


class OtherRequests:
    """A downloader middleware that drops requests forbidden by robots.txt, with an IgnoreRequest."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._robots: RobotsBesideFrontier | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_request(self, request: Request) -> Coroutine[Any, Any, Request | None] | None:
        frontier = frontier_of(self._crawler)
        if frontier is None or frontier.started.is_bound(request) or frontier.started.is_refused(request):
            return None
        if self._robots is None:
            from bigcrawl.middlewares.robots import RobotsBesideFrontier  # not for crawls that have no such request

            self._robots = RobotsBesideFrontier.from_crawler(self._crawler)
        return self._robots.process_request(request)
