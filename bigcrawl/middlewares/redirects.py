"""Scrapy's two redirect middlewares, but with targets read and spelled like links (`bigcrawl.url.header`).

Scrapy spells targets differently, so a page would be fetched under two URLs. Therefore its middlewares are given the
canonical target, and the request that they make gets it once more. If scope or filters drop the target, or it is not a
web address, the redirect is counted, and the answer goes to the spider.

A redirect of a URL to itself is followed only if it sets a cookie that the request did not carry. Scrapy would follow
any such redirect, `REDIRECT_MAX_TIMES` times.
"""

from __future__ import annotations

import re
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Final

from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware as ScrapyMetaRefresh
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware as ScrapyRedirect
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Request, Response

from bigcrawl.links import refresh_of
from bigcrawl.middlewares.link_checks import link_checks_of
from bigcrawl.url.canonical import UrlError, canonicalize
from bigcrawl.url.header import text_of, url_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Spider
    from scrapy.crawler import Crawler

HEAD_BYTES: Final = 16 << 10  # of a page, searched for a refresh
_NOWHERE: Final = "nowhere:"  # Scrapy makes no request for it

SELF_REDIRECTS_MAX: Final = 3  # in a row; a server may set a new cookie on each request

_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))  # as in Scrapy
_names_refresh = re.compile(rb"r\0?+e\0?+f\0?+r\0?+e\0?+s\0?+h", re.IGNORECASE).search


class RedirectMiddleware(ScrapyRedirect):
    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        if response.status not in _REDIRECTS:  # nearly all answers
            return response
        locations = response.headers.getlist("Location")
        if not any(locations):
            return response
        url = url_in(locations, request.url)
        headers = response.headers.copy()
        _, *fragment = text_of(next(filter(None, locations))).partition("#")
        headers["Location"] = "".join((url or _NOWHERE, *fragment))
        shown = Response(response.url, response.status, headers)
        target = _redirected(self.crawler, request, response, url, partial(super().process_response, request, shown))
        if _is_in_vain(self.crawler, request, response, target):
            raise IgnoreRequest("it redirects to itself without a new cookie, so it would never end")
        return target


class MetaRefreshMiddleware(ScrapyMetaRefresh):
    """Follows a page's meta refresh, or its Refresh header.

    Only the beginning of a page is decoded. Scrapy's middleware decodes the whole page, and guesses its encoding: up to
    a second for 6 MB.
    """

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        head = response.body[:HEAD_BYTES] if isinstance(response, HtmlResponse) else b""
        if not _names_refresh(head) and not dict.get(response.headers, b"Refresh"):
            return response
        # Keep the NUL that may complete a character of UTF-16.
        end = head.rfind(b">") + 1
        begin = Response(response.url, response.status, response.headers, head[: end + (head[end : end + 1] == b"\0")])
        led = refresh_of(begin, HEAD_BYTES, self._ignore_tags)
        if led is None:
            return response
        content = f"{led.seconds};url={escape(led.url or _NOWHERE)}"
        body = f'<meta http-equiv="refresh" content="{content}">'
        shown = HtmlResponse(response.url, response.status, response.headers, body.encode(), encoding="utf-8")
        target = _redirected(
            self.crawler, request, response, led.url, partial(super().process_response, request, shown)
        )
        return response if _is_in_vain(self.crawler, request, response, target) else target


def _redirected(
    crawler: Crawler, request: Request, response: Response, url: str | None, follow: Callable[[], Request | Response]
) -> Request | Response:
    try:
        target = follow()
    except ValueError:
        return _count_dropped(crawler, response)
    if not isinstance(target, Request) or link_checks_of(crawler).drops_redirect(request, url or target.url):
        return response
    spelled, *fragment = target.url.partition("#")
    if url is None or spelled == url:
        return target
    return target.replace(url="".join((url, *fragment)), meta={**target.meta, "verbatim_url": True})


def _is_in_vain(crawler: Crawler, request: Request, response: Response, target: Request | Response) -> bool:
    """Return whether the target is the same request without a new cookie; count it if so."""
    if not isinstance(target, Request) or (target.method, target.body) != (request.method, request.body):
        return False
    if _canonical_or_same(target.url) != _canonical_or_same(request.url) or _may_differ(crawler, request, response):
        return False
    assert crawler.stats is not None
    crawler.stats.inc_value("bigcrawl/dropped/redirect-to-itself")
    return True


def _canonical_or_same(url: str) -> str:
    try:
        return canonicalize(url)
    except UrlError:  # counted when it is queued
        return url


def _may_differ(crawler: Crawler, request: Request, response: Response) -> bool:
    if not crawler.settings.getbool("COOKIES_ENABLED") or request.meta.get("dont_merge_cookies"):
        return False
    before = request.meta.get("redirect_urls", [])[-SELF_REDIRECTS_MAX:]
    if len(before) == SELF_REDIRECTS_MAX and {_canonical_or_same(url) for url in before} == {
        _canonical_or_same(request.url)
    }:
        return False
    carried = {pair.strip() for header in request.headers.getlist("Cookie") for pair in header.split(b";")}
    return any(cookie.partition(b";")[0].strip() not in carried for cookie in response.headers.getlist("Set-Cookie"))


def _count_dropped(crawler: Crawler, response: Response) -> Response:
    assert crawler.stats is not None
    crawler.stats.inc_value("bigcrawl/dropped/redirect")
    return response
