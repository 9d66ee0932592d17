"""scrapy-poet: page objects by annotation, by classes in meta, and with parameters that tell requests apart."""

from __future__ import annotations

import scrapy
from scrapy_poet import DynamicDeps  # noqa: TC002 - read when it runs
from web_poet import WebPage

from tests.plugins.base import FLAKY, REDIRECTED, PluginSpider

SETTINGS = {"ADDONS": {"scrapy_poet.Addon": 300}}
OURS = {"BIGCRAWL_FINGERPRINTS": True}


class TitlePage(WebPage):
    @property
    def title(self):
        return self.css("title::text").get()


class Spider(PluginSpider):
    async def start(self):
        yield self.request(f"{self.site}/page/1")
        yield self.request(f"{self.others[0]}{FLAKY}", self.parse_titles)
        yield self.request(f"{self.refusing}/")
        for currency in ("EUR", "USD", "EUR"):
            params = {"page_params": {"currency": currency}}
            yield scrapy.Request(f"{self.site}/page/3", self.parse_params, meta=params, dont_filter=False)

    def request(self, url, callback=None):
        meta = {"inject": [TitlePage]} if callback else {}
        return scrapy.Request(url, callback, meta=meta, errback=self.failed)

    async def parse(self, response, page: TitlePage):  # type: ignore[override]
        yield self.told(response, title=page.title)
        yield response.follow("/page/2", self.parse_titles, meta={"inject": [TitlePage]})

    async def parse_titles(self, response, deps: DynamicDeps):
        retries = response.meta.get("retry_times")
        yield self.told(response, titles=[page.title for page in deps.values()], retries=retries)
        if "flaky" in response.url:
            yield self.request(f"{self.site}{REDIRECTED}", self.parse_titles)

    async def parse_params(self, response, page: TitlePage):
        yield self.told(response, title=page.title, params=response.meta["page_params"])
