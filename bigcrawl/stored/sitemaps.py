from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from bigcrawl.politeness.robots_policy import REDIRECTS_MAX, agent_token, verdict_on_response
from bigcrawl.scheduler.adapter.robots_fetch import RobotsFetch
from bigcrawl.url.canonical import join

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler

    from bigcrawl.scheduler.adapter.spider_start import Telling

logger = logging.getLogger(__name__)

_REDIRECT: Final = range(300, 400)


class SitemapPassing:
    """Passes sitemaps to a spider, one robots.txt after the other, and calls `wake` after each."""

    def __init__(self, crawler: Crawler, agent: str, wake: Callable[[], None]) -> None:
        self._fetch = RobotsFetch(crawler)
        self._agent = agent_token(agent)
        self._wake = wake
        self._task: asyncio.Task[None] | None = None

    @property
    def is_under_way(self) -> bool:
        return self._task is not None and not self._task.done()

    def begin(self, robots_url: str, tell: Telling) -> None:
        self._task = asyncio.ensure_future(self._pass_sitemaps(robots_url, tell))
        self._task.add_done_callback(lambda _: self._wake())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _pass_sitemaps(self, robots_url: str, tell: Telling) -> None:
        try:
            fetched = await self._fetch(robots_url)
            for _ in range(REDIRECTS_MAX):
                if fetched.status not in _REDIRECT or not fetched.location:
                    break
                fetched = await self._fetch(fetched.location)
            found = verdict_on_response(fetched.status, fetched.body, self._agent).sitemaps
            urls = [url for url in (join(robots_url, sitemap) for sitemap in found) if url is not None]
            if urls:
                await tell(robots_url, list(dict.fromkeys(urls)))
        except Exception:
            logger.exception("the sitemaps that %(url)s lists could not be read", {"url": robots_url})
