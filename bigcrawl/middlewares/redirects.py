"""Scrapy's two redirect middlewares, for targets that lead nowhere: `mailto:`, `http://[::`, the same URL again.

Scrapy's raise an exception at what is no web address, and the page is lost. Here the redirect is counted and not
followed, and the answer goes to the spider. So it does if scope or filters drop the target.

A redirect to itself is followed if the next request differs from this one: the answer sets a cookie that this request
did not carry. Sites that want a cookie before they show a page do that once, or twice if they try cookies first. Other
ones Scrapy follows `REDIRECT_MAX_TIMES` times. Here the first is the last: it ends as Scrapy's last one does, and a
page that refreshes itself goes to the spider.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware as ScrapyMetaRefresh
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware as ScrapyRedirect
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Request

from bigcrawl.middlewares.link_checks import link_checks_of
from bigcrawl.url.canonical import UrlError, canonicalize

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response


LOCATION_BYTES_MAX: Final = 16 << 10  # longer than any URL that is fetched; a long host name takes long to encode
HEAD_BYTES: Final = 16 << 10  # of a page: Scrapy looks for a refresh in its first 4,096 characters

SELF_REDIRECTS_MAX: Final = 3  # in a row, each with a new cookie; a server may invent one for each request

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
        if _is_in_vain(self.crawler, request, response, target):
            raise IgnoreRequest("it redirects to itself, and sets no new cookie")
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
        if answer is begin or _is_in_vain(self.crawler, request, response, answer):
            return response
        return response if _is_dropped(self.crawler, request, answer) else answer


def _is_dropped(crawler: Crawler, request: Request, target: Request | Response) -> bool:
    return isinstance(target, Request) and link_checks_of(crawler).drops_redirect(request, target.url)


def _is_in_vain(crawler: Crawler, request: Request, response: Response, target: Request | Response) -> bool:
    """Whether the target is the request once more, also in its cookies. If so, it is counted."""
    if not isinstance(target, Request) or (target.method, target.body) != (request.method, request.body):
        return False
    if _canonical(target.url) != _canonical(request.url) or _may_differ(crawler, request, response):
        return False
    assert crawler.stats is not None
    crawler.stats.inc_value("bigcrawl/dropped/redirect-to-itself")
    return True


def _canonical(url: str) -> str:
    try:
        return canonicalize(url)
    except UrlError:  # whoever queues it counts it
        return url


def _may_differ(crawler: Crawler, request: Request, response: Response) -> bool:
    """Whether the same request may get another answer, because it would carry another cookie."""
    if not crawler.settings.getbool("COOKIES_ENABLED") or request.meta.get("dont_merge_cookies"):
        return False
    before = request.meta.get("redirect_urls", [])[-SELF_REDIRECTS_MAX:]
    if len(before) == SELF_REDIRECTS_MAX and {_canonical(url) for url in before} == {_canonical(request.url)}:
        return False
    carried = {pair.strip() for header in request.headers.getlist("Cookie") for pair in header.split(b";")}
    return any(cookie.partition(b";")[0].strip() not in carried for cookie in response.headers.getlist("Set-Cookie"))


def _led_nowhere(crawler: Crawler, response: Response) -> Response:
    assert crawler.stats is not None
    crawler.stats.inc_value("bigcrawl/dropped/redirect")
    return response
