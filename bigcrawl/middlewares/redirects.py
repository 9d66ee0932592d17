"""Scrapy's two redirect middlewares, where they are led to what is no web address: `mailto:`, `http://[::`.

Scrapy's raise there, and the page is lost with a traceback. Here the redirect is counted and not followed, and the
answer goes on to the spider as one that redirects nowhere does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware as ScrapyMetaRefresh
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware as ScrapyRedirect
from scrapy.http import HtmlResponse

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response


LOCATION_BYTES_MAX: Final = 16 << 10  # longer than any URL that is fetched; a long host name takes long to be spelled
HEAD_BYTES: Final = 16 << 10  # of a page: Scrapy looks for a refresh in its first 4,096 characters

_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))  # those that Scrapy follows
_names_refresh = re.compile(rb"r\0?+e\0?+f\0?+r\0?+e\0?+s\0?+h", re.IGNORECASE).search


class RedirectMiddleware(ScrapyRedirect):
    """Follows the Location of an answer."""

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        """Return the request for where it leads, or the answer itself."""
        if response.status not in _REDIRECTS:  # nearly all; nothing that Scrapy's looks at can matter
            return response
        if len(response.headers.get("Location") or b"") > LOCATION_BYTES_MAX:
            return _led_nowhere(self.crawler, response)
        try:
            return super().process_response(request, response)
        except ValueError:
            return _led_nowhere(self.crawler, response)


class MetaRefreshMiddleware(ScrapyMetaRefresh):
    """Follows the refresh that a page asks for.

    Scrapy's turns the whole page into text to look at its first characters, and where that is no UTF-8, guesses its
    encoding: up to a second for a page of 6 MB. Here only the beginning is looked at, of a page that may ask for one.
    """

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        """Return the request for where it leads, or the page itself."""
        if not isinstance(response, HtmlResponse) or not _names_refresh(head := response.body[:HEAD_BYTES]):
            return response
        # No character is cut in two. `replace` would ask for the encoding of the whole page.
        begin = HtmlResponse(response.url, response.status, response.headers, head[: head.rfind(b">") + 1])
        try:
            answer = super().process_response(request, begin)
        except ValueError:
            return _led_nowhere(self.crawler, response)
        return response if answer is begin else answer


def _led_nowhere(crawler: Crawler, response: Response) -> Response:
    assert crawler.stats is not None
    crawler.stats.inc_value("bigcrawl/dropped/redirect")
    return response
