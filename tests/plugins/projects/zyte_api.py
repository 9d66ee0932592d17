"""scrapy-zyte-api by its add-on: pages as HTTP and as a browser has them, and one that goes past the API."""

from __future__ import annotations

from scrapy import Request
from zyte_api import RetryFactory, stop_on_download_error

from tests.plugins.base import PluginSpider

SETTINGS = {
    "ADDONS": {"scrapy_zyte_api.Addon": 600},
    "ZYTE_API_KEY": "a-key",
    "ZYTE_API_RETRY_POLICY": "tests.plugins.projects.zyte_api.ONCE",
}
OURS = {"BIGCRAWL_FINGERPRINTS": True}


class OnceFactory(RetryFactory):
    """As the API's default, which tries for a minute."""

    download_error_stop = stop_on_download_error(max_total=1, max_permanent=1)


ONCE = OnceFactory().build()


class Spider(PluginSpider):
    async def start(self):
        async for request in super().start():
            yield request
        meta = {"zyte_api_automap": {"browserHtml": True}}
        yield Request(f"{self.site}/page/1", self.parse, meta=meta)
        yield Request(f"{self.site}/echo/past", self.parse_echo, meta={"zyte_api_automap": False})

    def work_of(self, response):
        given = response.raw_api_response
        return {"kind": type(response).__name__, "given": sorted(given), "title": response.css("title::text").get()}

    def parse_echo(self, response):
        yield self.told(response, kind=type(response).__name__)
