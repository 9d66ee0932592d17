from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.clock import SystemClock
from bigcrawl.scheduler.adapter.started_requests import StartedRequests

if TYPE_CHECKING:
    from scrapy import Request

    from bigcrawl.scheduler.adapter.engine_probe import EngineProbe
    from bigcrawl.scheduler.adapter.live_requests import LiveRequests


class GivenRequests(StartedRequests):
    def __init__(self, probe: EngineProbe) -> None:
        super().__init__(probe, SystemClock(), 0)
        self._given: dict[Request, None] = {}
        self._live: LiveRequests | None = None

    def __len__(self) -> int:
        return len(self._given)

    def open(self, live: LiveRequests) -> None:
        self._live = live

    @property
    def requests(self) -> list[Request]:
        return list(self._given)

    def record_handed_out(self, request: Request) -> None:
        self._given[request] = None

    def forget_ended(self) -> None:
        for request in [request for request in self._given if self._probe.has_ended(request)]:
            del self._given[request]
            if self._live is not None:
                self._live.end(request, comes_back=False)

    def is_handed_out(self, request: Request) -> bool:
        return request in self._given
