"""Polls a crawl with little load on Redis: slow reads are in a task that sleeps `ASIDE_SHARE` times as long."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.exceptions import BigcrawlError, RewoundError, TransientStoreError
from bigcrawl.views.errors import by_reason, read_errors
from bigcrawl.views.hosts import HostQuery, list_hosts
from bigcrawl.views.status import status_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl.views.opened_crawl import OpenedCrawl

RATE_S: Final = 10.0

ASIDE_S: Final = 10.0
ASIDE_SHARE: Final = 20
HOSTS: Final = 20
HOSTS_WALKED: Final = 10_000  # so many hosts, those due first, are read; those with the most URLs are shown
PLDS: Final = 1


class PollResults(NamedTuple):
    """The results of the last polls.

    Attributes:
        status: None before the first answer.
        rates: bytes, new URLs, errors and dropped URLs per second.
        hosts: the hosts with the most waiting URLs, most first.
        trouble: why `status` is outdated; empty if it is not.
    """

    status: dict[str, Any] | None = None
    rates: Mapping[str, float] = MappingProxyType({})
    hosts: dict[str, Any] | None = None
    errors: Sequence[dict[str, Any]] = ()
    trouble: str = ""
    silent_s: float = 0.0


class CrawlPolls:
    """Polls one crawl; not safe for concurrent tasks."""

    def __init__(self, crawl: OpenedCrawl) -> None:
        self._crawl = crawl
        self._seen = PollResults()
        self._totals: deque[tuple[float, dict[str, int]]] = deque()
        self._answered_s = time.monotonic()
        self._aside: asyncio.Task[None] | None = None
        self._aside_due_s = 0.0

    @property
    def last_results(self) -> PollResults:
        return self._seen

    async def poll(self, *, is_only: bool = False) -> PollResults:
        """Poll once.

        While Redis is away, return the last results and the reason; with `is_only`, wait for all or raise.
        """
        try:
            status = await status_of(self._crawl)
            if is_only:
                await self._poll_slow_data()
        except TransientStoreError as error:
            if is_only:
                raise
            if isinstance(error, RewoundError):  # Redis was restarted; a command has nothing to compare with it
                with suppress(TransientStoreError):
                    await self._crawl.client.accept_restart()
            silent_s = time.monotonic() - self._answered_s
            self._seen = self._seen._replace(trouble=str(error), silent_s=silent_s)
            return self._seen
        self._answered_s = time.monotonic()
        self._seen = self._seen._replace(status=status, rates=self._rates_since(status), trouble="", silent_s=0.0)
        if not is_only and self._aside is None and time.monotonic() >= self._aside_due_s:
            self._aside = asyncio.create_task(self._poll_slow_data())
        return self._seen

    async def close(self) -> None:
        if self._aside is not None:
            self._aside.cancel()
            await asyncio.gather(self._aside, return_exceptions=True)

    async def _poll_slow_data(self) -> None:
        since_s = time.monotonic()
        try:
            errors = by_reason(await read_errors(self._crawl), PLDS)
            hosts = await list_hosts(self._crawl, HostQuery("", "", "waiting", 0, HOSTS), HOSTS_WALKED)
            self._seen = self._seen._replace(errors=errors, hosts=hosts)
        except BigcrawlError:
            if self._aside is None:
                raise  # the caller waits for it
        finally:
            ended_s = time.monotonic()
            self._aside, self._aside_due_s = None, ended_s + max(ASIDE_S, ASIDE_SHARE * (ended_s - since_s))

    def _rates_since(self, status: Mapping[str, Any]) -> dict[str, float]:
        now_s, totals = time.monotonic(), totals_of(status)
        self._totals.append((now_s, totals))
        while len(self._totals) > 2 and self._totals[1][0] <= now_s - RATE_S:
            self._totals.popleft()
        since_s, before = self._totals[0]
        if now_s <= since_s:
            return {}
        return {name: (total - before[name]) / (now_s - since_s) for name, total in totals.items()}


def totals_of(status: Mapping[str, Any]) -> dict[str, int]:
    def below(prefix: str) -> int:
        return sum(count for name, count in status["outcomes"].items() if name.startswith(prefix))

    return {
        "bytes": status["bytes"],
        "new": status["urls"]["seen"],
        "errors": below("error:"),
        "dropped": below("dropped:"),
    }
