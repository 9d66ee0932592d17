"""Scrapy's two redirect middlewares, for targets that are not web addresses: `mailto:`, `http://[::`.

Scrapy's raise an exception there, and the page is lost. Here the redirect is counted and not followed, and the answer
goes to the spider. So it does if scope or filters drop the target.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware as ScrapyMetaRefresh
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware as ScrapyRedirect
from scrapy.http import HtmlResponse, Request

from bigcrawl.middlewares.link_checks import link_checks_of

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response


LOCATION_BYTES_MAX: Final = 16 << 10  # longer than any URL that is fetched; a long host name takes long to encode
HEAD_BYTES: Final = 16 << 10  # of a page: Scrapy looks for a refresh in its first 4,096 characters

_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))  # the statuses that Scrapy follows
_names_refresh = re.compile(rb"r\0?+e\0?+f\0?+r\0?+e\0?+s\0?+h", re.IGNORECASE).search


class RedirectMiddleware(ScrapyRedirect):
    """Follows the Location of an answer."""

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        """Return the request for the target, or the answer itself."""
        if response.status not in _REDIRECTS:  # nearly all answers; Scrapy's middleware would do nothing
            return response
        if len(response.headers.get("Location") or b"") > LOCATION_BYTES_MAX:
            return _led_nowhere(self.crawler, response)
        try:
            target = super().process_response(request, response)
        except ValueError:
            return _led_nowhere(self.crawler, response)
        return response if _is_dropped(self.crawler, request, target) else target


class MetaRefreshMiddleware(ScrapyMetaRefresh):
    """Follows a page's meta refresh.

    Scrapy's decodes the whole page to look at its first characters, and guesses the encoding if it is not UTF-8: up to
    a second for a page of 6 MB. This one decodes only the beginning, and only if the page may contain a refresh.
    """

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        """Return the request for the target, or the page itself."""
        if not isinstance(response, HtmlResponse) or not _names_refresh(head := response.body[:HEAD_BYTES]):
            return response
        # Do not split a character. `replace` would determine the encoding of the whole page.
        begin = HtmlResponse(response.url, response.status, response.headers, head[: head.rfind(b">") + 1])
        try:
            answer = super().process_response(request, begin)
        except ValueError:
            return _led_nowhere(self.crawler, response)
        return response if answer is begin or _is_dropped(self.crawler, request, answer) else answer


def _is_dropped(crawler: Crawler, request: Request, target: Request | Response) -> bool:
    return isinstance(target, Request) and link_checks_of(crawler).drops_redirect(request, target.url)


def _led_nowhere(crawler: Crawler, response: Response) -> Response:
    assert crawler.stats is not None
    crawler.stats.inc_value("bigcrawl/dropped/redirect")
    return response
