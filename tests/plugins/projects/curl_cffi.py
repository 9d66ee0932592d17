"""scrapy-curl-cffi: pages fetched as a browser fetches them; options of the project, and of single requests."""

from __future__ import annotations

import scrapy

from tests.plugins.base import PluginSpider

SETTINGS = {
    "DOWNLOAD_HANDLERS": dict.fromkeys(("http", "https"), "scrapy_curl_cffi.handlers.CurlCffiDownloadHandler"),
    "DOWNLOADER_MIDDLEWARES": {
        "scrapy.downloadermiddlewares.defaultheaders.DefaultHeadersMiddleware": None,
        "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware": None,
        "scrapy_curl_cffi.middlewares.CurlCffiMiddleware": 200,
        "scrapy_curl_cffi.middlewares.DefaultHeadersMiddleware": 400,
        "scrapy_curl_cffi.middlewares.UserAgentMiddleware": 500,
    },
    "CURL_CFFI_OPTIONS": {"impersonate": "firefox"},
}


class Spider(PluginSpider):
    async def start(self):
        async for request in super().start():
            yield request
        yield self.request(f"{self.site}/echo/as", self.parse_echo)
        # As of every project: the options are set by the middleware.
        yield scrapy.Request(f"{self.site}/echo/by-setting", self.parse_echo)

    def new_meta(self):
        return {"curl_cffi_options": {"impersonate": "chrome"}}

    def work_of(self, response):
        return {"flags": response.flags}

    def parse_echo(self, response):
        agent = response.json()["headers"]["user-agent"][0]
        yield self.told(response, agent=[name for name in ("Chrome", "Firefox") if name in agent])
