"""The default renderer: Chromium, driven by Playwright."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.config import read_config
from bigcrawl.features.rendering.settings import RenderConfig
from bigcrawl_rendering.browsers import Browsers
from bigcrawl_rendering.interface import PageSuspectError
from bigcrawl_rendering.requirements import browser_path
from bigcrawl_rendering.tab import Tab

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from scrapy.crawler import Crawler

    from bigcrawl_rendering.browsers import Browser
    from bigcrawl_rendering.interface import Loads, RawPage, Rendered


class ChromiumRenderer:
    def __init__(self, config: RenderConfig, agent: str, total_s: float, record_end: Callable[[str], None]) -> None:
        self._config = config
        self._agent = agent
        self._total_s = total_s
        self._browsers = Browsers(
            browser_path(config.chromium), config.browsers, config.tabs, 1_000_000 * config.memory_mb, record_end
        )

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = read_config(crawler.settings)
        stats = crawler.stats
        assert stats is not None
        return cls(
            config.feature_config(RenderConfig),
            crawler.settings.get("USER_AGENT") or "",
            config.politeness.fetch_deadline_ms / 1000,
            lambda how: stats.inc_value(f"render/browsers/{how}"),
        )

    async def render(self, page: RawPage, loads: Loads, *, alone: bool = False) -> Rendered:
        config = self._config
        tab = Tab(page, loads, active_s=config.page_s, total_s=self._total_s, steps_max=config.steps_max)
        return await self._browsers.run(lambda browser: self._show(tab, browser), alone=alone)

    async def _show(self, tab: Tab, browser: Browser) -> Rendered:
        try:
            rendered = await tab.render(browser.shown, self._agent)
        except PageSuspectError as error:
            if error.needs_kill:
                browser.kill("killed")
            raise
        rendered.by = browser.version
        return rendered

    async def close(self) -> None:
        await self._browsers.close()
