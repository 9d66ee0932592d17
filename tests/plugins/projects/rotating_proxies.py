"""scrapy-rotating-proxies: a proxy for each request, another one if that is banned or dead."""

from __future__ import annotations

from tests.plugins.base import PluginSpider

SETTINGS = {
    "DOWNLOADER_MIDDLEWARES": {
        "rotating_proxies.middlewares.RotatingProxyMiddleware": 610,
        "rotating_proxies.middlewares.BanDetectionMiddleware": 620,
    },
    # Half of the proxies are of no use: a page that is well does not meet so many of these in a row.
    "ROTATING_PROXY_PAGE_RETRY_TIMES": 30,
}


class Spider(PluginSpider):
    async def start(self):
        async for request in super().start():
            # A proxy answers 502 for a closed port, and with such a robots.txt nothing is fetched.
            if not request.url.startswith(self.refusing):
                yield request

    def work_of(self, response):
        return {"by_proxy": bool(response.meta["proxy"])}

    def failed(self, failure):
        """Of a URL that is given up the last proxy is any of them, and so is its error."""
        for item in super().failed(failure):
            yield {**item, "failed": True}
