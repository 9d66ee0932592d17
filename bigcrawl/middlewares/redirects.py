"""Scrapy's two redirect middlewares, where they are led to what is no web address: `mailto:`, `http://[::`.

Scrapy's raise there, and the page is lost with a traceback. Here the redirect is counted and not followed, and the
answer goes on to the spider as one that redirects nowhere does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware as ScrapyMetaRefresh
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware as ScrapyRedirect

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class RedirectMiddleware(ScrapyRedirect):
    """Follows the Location of an answer."""

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        """Return the request for where it leads, or the answer itself."""
        if response.status < 300:  # nearly all; nothing that Scrapy's looks at can matter
            return response
        try:
            return super().process_response(request, response)
        except ValueError:
            return _led_nowhere(self.crawler, response)


class MetaRefreshMiddleware(ScrapyMetaRefresh):
    """Follows the refresh that a page asks for."""

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        """Return the request for where it leads, or the page itself."""
        try:
            return super().process_response(request, response)
        except ValueError:
            return _led_nowhere(self.crawler, response)


def _led_nowhere(crawler: Crawler, response: Response) -> Response:
    assert crawler.stats is not None
    crawler.stats.inc_value("bigcrawl/dropped/redirect")
    return response
