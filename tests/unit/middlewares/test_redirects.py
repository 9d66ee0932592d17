"""Redirects to what is no web address: the answer stays, and is counted; all others are Scrapy's."""

from __future__ import annotations

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response

from bigcrawl.middlewares.redirects import MetaRefreshMiddleware, RedirectMiddleware
from tests.unit.downloads.crawlers import new_crawler

URL = "http://a.example/"
NOWHERE = ["mailto:me@a.example", "tel:+49", "http://[::1/", "http://[not-v6]/", "//[::"]
ELSEWHERE = ["/next", "http://b.example/", "https://[::1]/", "//b.example/x"]


def led(location: str, *, by_page: bool) -> tuple[Request | Response, int]:
    """What comes of an answer that leads somewhere, and what was counted for it."""
    crawler = new_crawler()
    answer: Response
    if by_page:
        body = f'<html><head><meta http-equiv="refresh" content="0;url={location}"></head></html>'.encode()
        answer = HtmlResponse(URL, body=body, encoding="utf-8")
        result = MetaRefreshMiddleware.from_crawler(crawler).process_response(Request(URL), answer)
    else:
        answer = Response(URL, status=302, headers={"Location": location})
        result = RedirectMiddleware.from_crawler(crawler).process_response(Request(URL), answer)
    assert isinstance(result, Request) or result is answer
    assert crawler.stats is not None
    return result, crawler.stats.get_value("bigcrawl/dropped/redirect", 0)


@pytest.mark.parametrize("by_page", [False, True])
@pytest.mark.parametrize("location", NOWHERE)
def test_redirect_to_no_web_address_is_counted_and_not_followed(location: str, by_page: bool) -> None:
    """No error that would lose the answer: it goes on to the spider."""
    result, counted = led(location, by_page=by_page)
    assert isinstance(result, Response)
    assert counted == 1


@pytest.mark.parametrize("by_page", [False, True])
@pytest.mark.parametrize("location", ELSEWHERE)
def test_other_redirects_are_followed(location: str, by_page: bool) -> None:
    """As Scrapy does it."""
    result, counted = led(location, by_page=by_page)
    assert isinstance(result, Request)
    assert result.meta["redirect_urls"] == [URL]
    assert counted == 0


def test_location_longer_than_any_url_is_not_read() -> None:
    """The name of a host is brought into its form in a time that grows with more than its length."""
    result, counted = led("x..y://" + "\u00c3" * 20_000, by_page=False)
    assert isinstance(result, Response)
    assert counted == 1


def test_long_location_of_what_is_no_redirect_is_not_counted() -> None:
    """Nobody would have followed it."""
    crawler = new_crawler()
    page = Response(URL, status=404, headers={"Location": "http://" + "x" * 20_000})
    assert RedirectMiddleware.from_crawler(crawler).process_response(Request(URL), page) is page
    assert crawler.stats is not None
    assert crawler.stats.get_value("bigcrawl/dropped/redirect") is None


def test_page_that_redirects_nowhere_is_as_it_was() -> None:
    """An answer of 200 is not looked at, whatever its header says."""
    page = Response(URL, headers={"Location": "/next"})
    assert RedirectMiddleware.from_crawler(new_crawler()).process_response(Request(URL), page) is page


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_refresh_is_found_in_any_encoding(encoding: str) -> None:
    """It stands at the beginning of the page; characters before and after it are of more than one byte."""
    text = '<title>caf\u00e9</title><meta http-equiv=Refresh content="0;url=/next">' + "\u00e9" * 20_000
    page = HtmlResponse(URL, body=text.encode(encoding), headers={"Content-Type": f"text/html; charset={encoding}"})
    result = MetaRefreshMiddleware.from_crawler(new_crawler()).process_response(Request(URL), page)
    assert isinstance(result, Request)
    assert result.url == "http://a.example/next"


@pytest.mark.parametrize("refresh", [b"", b"<meta http-equiv=refresh content=60>"])
def test_page_is_not_turned_into_text_for_a_refresh(refresh: bytes) -> None:
    """To guess the encoding of a large page takes a second."""
    page = HtmlResponse(URL, body=refresh + b"<p>\xc3" + b"d" * 100_000)
    assert MetaRefreshMiddleware.from_crawler(new_crawler()).process_response(Request(URL), page) is page
    assert page._cached_ubody is None
