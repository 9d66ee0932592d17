"""The spiders of both sides, as in Scrapy's documentation; `site`, `others` and `refusing` are origins."""

from __future__ import annotations

import asyncio
from pathlib import Path

import scrapy
from scrapy.exceptions import CloseSpider, DropItem, IgnoreRequest
from scrapy.linkextractors import LinkExtractor
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider
from scrapy.utils.request import fingerprint


class Base(scrapy.Spider):
    def __init__(self, origins, refusing, **kwargs):
        super().__init__(**kwargs)
        self.site, *self.others = origins
        self.refusing = refusing
        self.start_urls = [f"{self.site}{path}" for path in getattr(self, "paths", ())]

    def told(self, response, **more):
        return {"url": response.url, "status": response.status, "depth": response.meta.get("depth"), **more}

    def failed(self, failure):
        yield {
            "url": failure.request.url,
            "failed": repr(failure.type),
            "retries": failure.request.meta.get("retry_times"),
        }


class PlainSpider(Base):
    name = "plain"
    paths = ("/",)

    def parse(self, response):
        yield self.told(response, title=response.css("title::text").get())
        yield from response.follow_all(css="a", callback=self.parse_page, cb_kwargs={"found_on": response.url})
        yield response.follow("/page/1", self.parse_page, cb_kwargs={"found_on": "again"})
        yield scrapy.Request(f"{self.site}/page/2", self.parse_page, dont_filter=True, cb_kwargs={"found_on": "twice"})

    async def parse_page(self, response, found_on):
        await asyncio.sleep(0)
        yield self.told(response, referer=response.request.headers.get("Referer", b"").decode())


class DataSpider(Base):
    """Pages in their own URLs, at the start and later; they lead to others, and to files, which are not read."""

    name = "data"
    custom_settings = {"COOKIES_ENABLED": False}  # noqa: RUF012 - Scrapy's own way

    async def start(self):
        yield scrapy.Request("data:text/html,<a href='/page/1'>x</a>", self.parse_data, dont_filter=True)
        yield scrapy.Request("data:;base64,eA==", self.parse_data, cb_kwargs={"more": lambda: 0})

    def parse_data(self, response, more=None):
        yield {"url": response.url, "body": response.text, "kind": type(response).__name__}
        yield scrapy.Request(f"{self.site}/page/1", self.parse_page)
        yield scrapy.Request("data:;base64,eA==", self.parse_data)

    def parse_page(self, response):
        yield self.told(response)
        yield scrapy.Request("data:,later", self.parse_data)


class DamagedDataSpider(Base):
    name = "damaged_data"

    async def start(self):
        yield scrapy.Request("data:;base64,e", errback=self.failed)


class ByKind:
    """Tells requests apart by their meta, as plug-ins do."""

    def fingerprint(self, request):
        return fingerprint(request) + repr(request.meta.get("kind")).encode()


class FingerprintSpider(Base):
    """A URL for each kind once; a redirect and a link keep theirs."""

    name = "fingerprints"

    async def start(self):
        for kind in ("a", "b", "a", None):
            yield scrapy.Request(f"{self.site}/page/1", meta={"kind": kind} if kind else {}, dont_filter=False)
        yield scrapy.Request(f"{self.others[0]}/flaky/1/comes", meta={"kind": "a"})
        yield scrapy.Request(f"{self.others[1]}/flaky/9/never", meta={"kind": "a"}, errback=self.failed)

    def parse(self, response):
        kind = response.meta.get("kind")
        yield self.told(response, kind=kind, retries=response.meta.get("retry_times"))
        for _ in range(2):
            yield response.follow("/page/2", meta={"kind": kind})
        yield response.follow("/page/1")


class StartSpider(Base):
    """A `start` of one's own: items and requests."""

    name = "start"

    async def start(self):
        yield {"from": "start"}
        for number in range(3):
            yield scrapy.Request(f"{self.site}/page/{number}", meta={"number": number}, priority=number)

    def parse(self, response):
        yield self.told(response, number=response.meta["number"], priority=response.request.priority)


class RulesSpider(CrawlSpider, Base):
    name = "rules"
    paths = ("/shop/",)
    rules = (
        Rule(LinkExtractor(allow=r"/shop/category/")),
        Rule(
            LinkExtractor(allow=r"/shop/product/"), callback="parse_product", follow=True, cb_kwargs={"kind": "product"}
        ),
    )

    def parse_product(self, response, kind):
        yield self.told(response, kind=kind, link_text=response.meta.get("link_text"))


class MapSpider(SitemapSpider, Base):
    name = "map"
    sitemap_rules = (("/page/[0-3]$", "parse_low"), ("/page/", "parse_high"))

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.sitemap_urls = [f"{self.site}/robots.txt"]

    def parse_low(self, response):
        yield self.told(response, how="low")

    def parse_high(self, response):
        yield self.told(response, how="high")


class FormsSpider(Base):
    name = "forms"
    paths = ("/form",)

    def parse(self, response):
        yield scrapy.FormRequest.from_response(response, formdata={"user": "me"}, callback=self.parse_echo)
        url = f"{self.site}/echo/body"
        yield scrapy.FormRequest(url, formdata={"q": ["café", "2"]}, callback=self.parse_echo)
        yield scrapy.http.JsonRequest(url, data={"a": [1, None]}, callback=self.parse_echo)
        yield scrapy.Request(url, method="PUT", body=b"\x00\xff", headers={"X-Own": "1"}, callback=self.parse_echo)

    def parse_echo(self, response):
        echo = response.json()
        headers = {name: echo["headers"].get(name) for name in ("content-type", "x-own", "referer")}
        yield self.told(response, method=echo["method"], body=echo["body"], headers=headers)


class ErrbackSpider(Base):
    """The documentation's, with the URLs of this site: "Using errbacks to catch exceptions"."""

    name = "errback_example"

    async def start(self):
        urls = [
            f"{self.site}/page/1",  # HTTP 200 expected
            f"{self.site}/status/404",  # Not found error
            f"{self.site}/status/500",  # server issue
            f"{self.others[0]}/hold",  # non-responding host, timeout expected
            f"{self.refusing}/",
            "http://nobody.invalid/",  # DNS error expected
            f"{self.site}/redirect/forever",
        ]
        for u in urls:
            yield scrapy.Request(
                u,
                callback=self.parse_httpbin,
                errback=self.errback_httpbin,
                dont_filter=True,
                meta={"download_timeout": 2} if "hold" in u else None,
            )

    def parse_httpbin(self, response):
        self.logger.info("Got successful response from %s", response.url)
        yield {"url": response.url, "got": "response"}
        yield response.follow("/private/page", self.parse_httpbin, errback=self.errback_httpbin)

    def errback_httpbin(self, failure):
        from scrapy.exceptions import CannotResolveHostError, DownloadTimeoutError

        # log all failures
        self.logger.info(repr(failure))

        # in case you want to do something special for some errors,
        # you may need the failure's type:

        request = failure.request
        if failure.check(HttpError):
            # these exceptions come from HttpError spider middleware
            # you can get the non-200 response
            response = failure.value.response
            yield {"url": response.url, "got": "HttpError", "status": response.status}
        elif failure.check(CannotResolveHostError):
            # this is the original request
            yield {"url": request.url, "got": "CannotResolveHostError", "retries": request.meta["retry_times"]}
        elif failure.check(DownloadTimeoutError):
            yield {"url": request.url, "got": "DownloadTimeoutError", "retries": request.meta["retry_times"]}
        else:
            yield {"url": request.url, "got": repr(failure.type), "retries": request.meta.get("retry_times")}


class CookieSpider(Base):
    name = "cookies"

    async def start(self):
        yield scrapy.Request(f"{self.site}/cookie-gate", self.parse_gate, dont_filter=True)
        yield scrapy.Request(f"{self.others[0]}/echo/own", self.parse_echo, cookies={"own": "1"})
        yield scrapy.Request(
            f"{self.others[1]}/echo/none", self.parse_echo, cookies={"own": "1"}, meta={"dont_merge_cookies": True}
        )

    def parse_gate(self, response):
        yield self.told(response)
        yield scrapy.Request(f"{self.site}/echo/after", self.parse_echo)

    def parse_echo(self, response):
        yield self.told(response, cookie=response.json()["headers"].get("cookie"))


class PipelineSpider(Base):
    name = "pipelines"
    paths = ("/page/1", "/page/2", "/page/3", "/page/4")

    def parse(self, response):
        yield {"number": int(response.url[-1])}


class OwnPipeline:
    """Takes its time, drops the second, fails on the third."""

    def open_spider(self):
        self.opened = True

    async def process_item(self, item):
        await asyncio.sleep(0.01)
        if item.get("number") == 2:
            raise DropItem("unwanted")
        if item.get("number") == 3:
            raise ValueError("a pipeline of somebody's that fails")
        return {**item, "piped": self.opened}


class ChainSpider(Base):
    """A page after the other, so that both sides close at the same one."""

    name = "chain"
    paths = ("/page/1",)

    def parse(self, response):
        number = int(response.url.rpartition("/")[2])
        yield {"number": number}
        if number == self.settings.getint("FAILS_AT"):
            raise ValueError("a callback of somebody's that fails")
        if number == self.settings.getint("CLOSES_AT"):
            raise CloseSpider("enough")
        if number < 6:
            yield response.follow(f"/page/{number + 1}")


class HoldSpider(Base):
    name = "hold"
    paths = ("/hold",)


class RetrySpider(Base):
    name = "retries"

    async def start(self):
        for origin, path in zip(self.others, ("/flaky/1/comes", "/flaky/9/never", "/flaky/1/unwanted"), strict=False):
            meta = {"dont_retry": True} if path.endswith("unwanted") else {}
            yield scrapy.Request(origin + path, errback=self.failed, meta=meta)

    def parse(self, response):
        yield self.told(response, retries=response.meta.get("retry_times"))


class RedirectSpider(Base):
    name = "redirects"

    async def start(self):
        for name in ("same", "cross", "chain"):
            yield scrapy.Request(f"{self.site}/redirect/{name}", errback=self.failed)
        yield scrapy.Request(f"{self.site}/redirect/post-303", method="POST", body="x", callback=self.parse_echo)
        yield scrapy.Request(f"{self.site}/redirect/post-307", method="POST", body="x", callback=self.parse_echo)

    def parse(self, response):
        yield self.told(response, **{key: response.meta.get(key) for key in ("redirect_urls", "redirect_reasons")})

    def parse_echo(self, response):
        yield self.told(response, method=response.json()["method"], body=response.json()["body"])


class BesideSpider(Base):
    """A callback that downloads by itself, as a media pipeline does: robots.txt counts there, too."""

    name = "beside"
    paths = ("/page/1",)

    async def parse(self, response):
        for url in ("/page/2", "/private/a", f"{self.others[2]}/private/b", f"{self.others[2]}/page/3"):
            try:
                found = await self.crawler.engine.download_async(response.follow(url))
            except IgnoreRequest:
                yield {"url": url, "got": "IgnoreRequest"}
            else:
                yield self.told(found)


class KeysSpider(Base):
    """Keys of meta, each with what it does to an answer."""

    name = "keys"

    async def start(self):
        for url, meta in (
            (f"{self.site}/redirect/same", {"dont_redirect": True, "handle_httpstatus_list": [302]}),
            (f"{self.site}/status/404", {"handle_httpstatus_all": True}),
            (f"{self.site}/page/1", {"referrer_policy": "no-referrer", "download_slot": "mine"}),
            (f"{self.others[0]}/flaky/2/more", {"max_retry_times": 2}),
            (f"{self.others[1]}/flaky/9/none", {"max_retry_times": 0}),
        ):
            yield scrapy.Request(url, meta=meta, errback=self.failed)
        # A file of this project, and not for what a page names.
        yield scrapy.Request(Path(__file__).as_uri(), self.parse_file)

    def parse(self, response):
        yield self.told(response, retries=response.meta.get("retry_times"))
        if response.url.endswith("/page/1"):
            yield response.follow("/echo/1", self.parse_echo, meta={"referrer_policy": "no-referrer"})
            yield response.follow("/echo/2", self.parse_echo)

    def parse_echo(self, response):
        yield self.told(response, referer=response.json()["headers"].get("referer"))

    def parse_file(self, response):
        yield {"file": response.url, "size": len(response.body)}


class SlotSpider(Base):
    name = "slots"

    async def start(self):
        for number in range(3):
            for origin in (self.site, self.others[0]):
                yield scrapy.Request(f"{origin}/page/{number}")

    def parse(self, response):
        yield self.told(response)


SPIDERS = {
    spider.name: spider
    for spider in (
        PlainSpider,
        DataSpider,
        DamagedDataSpider,
        FingerprintSpider,
        StartSpider,
        RulesSpider,
        MapSpider,
        FormsSpider,
        ErrbackSpider,
        CookieSpider,
        PipelineSpider,
        ChainSpider,
        HoldSpider,
        RetrySpider,
        RedirectSpider,
        BesideSpider,
        KeysSpider,
        SlotSpider,
    )
}
