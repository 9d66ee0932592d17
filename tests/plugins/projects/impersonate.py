"""scrapy-impersonate: pages fetched as a browser fetches them."""

from __future__ import annotations

import scrapy

from tests.plugins.base import PluginSpider

SETTINGS = {
    "DOWNLOAD_HANDLERS": dict.fromkeys(("http", "https"), "scrapy_impersonate.ImpersonateDownloadHandler"),
    "USER_AGENT": "",  # as its README says
}


class Spider(PluginSpider):
    async def start(self):
        async for request in super().start():
            yield request
        yield self.request(f"{self.site}/echo/as", self.parse_echo)

    def new_meta(self):
        return {"impersonate": "chrome", "impersonate_args": {"verify": False}}

    def work_of(self, response):
        return {"flags": response.flags}

    def parse_echo(self, response):
        agent = response.json()["headers"]["user-agent"][0]
        yield self.told(response, is_chrome="Chrome" in agent)
        yield scrapy.Request(f"{self.site}/page/plain", errback=self.failed)
