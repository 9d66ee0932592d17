"""Spiders as the plug-ins' own pages have them; `site` and `others` are origins of the tests' site."""

from __future__ import annotations

import scrapy

from tests.integration.stock.spiders import Base


def poet():
    from scrapy_poet import DynamicDeps  # type: ignore[import-not-found, unused-ignore]
    from web_poet import WebPage  # type: ignore[import-not-found, unused-ignore]

    class TitlePage(WebPage):  # type: ignore[misc, unused-ignore]
        @property
        def title(self):
            return self.css("title::text").get()

    class PoetSpider(Base):
        """Page objects by annotation, and by classes in meta."""

        name = "poet"

        async def start(self):
            yield scrapy.Request(f"{self.site}/page/1")
            yield scrapy.Request(f"{self.others[0]}/flaky/1/poet", self.parse_title)
            yield scrapy.Request(f"{self.site}/redirect/same", self.parse_title, meta={"inject": [TitlePage]})

        async def parse(self, response, page: TitlePage):
            yield self.told(response, title=page.title)
            yield response.follow("/page/2", self.parse_title, meta={"inject": [TitlePage]})

        async def parse_title(self, response, deps: DynamicDeps):
            yield self.told(response, titles=[page.title for page in deps.values()])

    globals()["TitlePage"] = TitlePage
    TitlePage.__qualname__ = "TitlePage"
    PoetSpider.parse.__annotations__["page"] = TitlePage
    PoetSpider.parse_title.__annotations__["deps"] = DynamicDeps
    return PoetSpider


class ImpersonatingSpider(Base):
    """Pages fetched as a browser fetches them, through a retry and a redirect."""

    name = "impersonate"

    async def start(self):
        meta = {"impersonate": "chrome", "impersonate_args": {"verify": False}}
        for url in (f"{self.site}/echo/as", f"{self.site}/redirect/cross", f"{self.others[1]}/flaky/1/as"):
            yield scrapy.Request(url, meta=meta, errback=self.failed)
        yield scrapy.Request(f"{self.refusing}/", meta=meta, errback=self.failed)

    def parse(self, response):
        agent = response.json()["headers"].get("user-agent", "") if "/echo/" in response.url else ""
        yield self.told(response, is_chrome="Chrome" in agent, retries=response.meta.get("retry_times"))


def playwright():
    from scrapy_playwright.page import PageMethod  # type: ignore[import-not-found, unused-ignore]

    class MethodsSpider(Base):
        """What scrapy-playwright's README has in meta, without the browser."""

        name = "playwright"

        async def start(self):
            methods = [PageMethod("screenshot", path="a.png"), PageMethod(lower, "X")]
            yield scrapy.Request(f"{self.site}/page/1", meta={"playwright_page_methods": methods})

        def parse(self, response):
            methods = response.meta["playwright_page_methods"]
            said = [f"{method.args} {method.kwargs}" for method in methods]
            yield self.told(response, methods=said, of={type(method).__name__ for method in methods} == {"PageMethod"})
            yield self.told(response, called=methods[1].method(*methods[1].args))

    return MethodsSpider


def lower(text):
    return text.lower()


SPIDERS = {"poet": poet, "impersonate": lambda: ImpersonatingSpider, "playwright": playwright}
