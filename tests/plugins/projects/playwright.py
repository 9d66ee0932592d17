"""scrapy-playwright with Debian's Chromium: pages made by scripts, methods of pages, and the page itself in meta."""

from __future__ import annotations

import os

from scrapy_playwright.page import PageMethod

from tests.plugins.base import PluginSpider

_ROOT = ["--no-sandbox"] if os.geteuid() == 0 else []
SETTINGS = {
    "DOWNLOAD_HANDLERS": dict.fromkeys(("http", "https"), "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"),
    "PLAYWRIGHT_LAUNCH_OPTIONS": {"executable_path": "/usr/bin/chromium", "args": _ROOT, "timeout": 120_000},
    "PLAYWRIGHT_DEFAULT_NAVIGATION_TIMEOUT": 120_000,
}


def stamp(page):
    """As a method of a page, a function of the project."""
    return page.evaluate("document.title += ' by ' + (navigator.webdriver ? 'a browser' : 'nobody')")


class Spider(PluginSpider):
    async def start(self):
        async for request in super().start():
            # robots.txt needs no browser: the errback of a closed port gets Scrapy's exception, and not the browser's.
            if not request.url.startswith(self.refusing):
                yield request
        slow = self.request(f"{self.site}/page/slow")
        slow.meta["playwright_page_methods"] = [PageMethod("wait_for_selector", "#never", timeout=500)]
        yield slow

    def new_meta(self):
        methods = [PageMethod(stamp), PageMethod("evaluate", "document.title + '!'")]
        return {"playwright": True, "playwright_include_page": True, "playwright_page_methods": methods}

    def work_of(self, response):
        methods = response.meta["playwright_page_methods"]
        return {"title": response.css("title::text").get(), "results": [method.result for method in methods]}

    async def parse(self, response):
        page = response.meta["playwright_page"]
        typed = await page.evaluate("1 + 1")
        await page.close()
        yield self.told(response, retries=response.meta.get("retry_times"), typed=typed, **self.work_of(response))

    async def parse_flaky(self, response):
        async for item in self.parse(response):
            yield item
        yield self.request(f"{self.site}/redirect/cross")

    async def failed(self, failure):
        if page := failure.request.meta.get("playwright_page"):
            await page.close()
        for item in super().failed(failure):
            yield item
