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
    """A crawler's frontier; `node` is None before joining, and for stored pages."""

    config: Config
    guard: AddressGuard
    started: StartedRequests
    intake: SpiderIntake
    flow: SpiderFlow
    start: SpiderStart
    node: Node | None
    last_survey: Survey | None

    @property
    def is_resumed(self) -> bool: ...

    @property
    def is_open(self) -> bool: ...

    def pld_of(self, host: str) -> str: ...

    def fail(self, error: BigcrawlError) -> None:
        pass
