"""Redirects to what is no web address, or to the same URL, lead nowhere and are counted; all others are Scrapy's."""

from __future__ import annotations

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response

from bigcrawl.middlewares.redirects import MetaRefreshMiddleware, RedirectMiddleware
from tests.unit.downloads.crawlers import new_crawler

URL = "http://a.example/"
NOWHERE = ["mailto:me@a.example", "tel:+49", "http://[::1/", "http://[not-v6]/", "//[::"]
ELSEWHERE = ["/next", "http://b.example/", "https://[::1]/", "//b.example/x"]


def led(location: str, *, by_page: bool, reason: str = "redirect") -> tuple[Request | Response, int]:
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
    return result, crawler.stats.get_value(f"bigcrawl/dropped/{reason}", 0)


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


SELF = ["/", URL, "HTTP://A.EXAMPLE", "http://a.example:80/#top"]


@pytest.mark.parametrize("location", SELF)
def test_page_that_refreshes_itself_is_kept(location: str) -> None:
    """Scrapy asks for it 21 times, and then drops it."""
    result, counted = led(location, by_page=True, reason="redirect-to-itself")
    assert isinstance(result, Response)
    assert counted == 1


@pytest.mark.parametrize("location", SELF)
def test_redirect_to_itself_is_not_followed(location: str) -> None:
    """It ends as Scrapy's last one does, after 20 more."""
    with pytest.raises(IgnoreRequest, match="redirects to itself"):
        led(location, by_page=False)


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


def follows(answers: list[bytes], *, carried: bytes = b"", **settings: object) -> int:
    """How many of the answers, each a redirect to itself that sets a cookie or none (b""), are followed in turn."""
    crawler = new_crawler(**settings)
    middleware, request = RedirectMiddleware.from_crawler(crawler), Request(URL)
    jar = {carried} - {b""}
    for followed, cookie in enumerate(answers):
        request.headers["Cookie"] = b"; ".join(sorted(jar))
        answer = Response(URL, status=302, headers={"Location": URL})
        if cookie:
            answer.headers["Set-Cookie"] = cookie
        try:
            result = middleware.process_response(request, answer)
        except IgnoreRequest:
            return followed
        assert isinstance(result, Request)
        request = result
        jar.add(cookie.partition(b";")[0])
    return len(answers)


@pytest.mark.parametrize(
    ("answers", "followed"),
    [
        ([b""], 0),
        ([b"seen=1; Path=/", b"seen=1"], 1),
        ([b"test=1", b"session=x; Secure", b""], 2),
        ([b"%d=1" % number for number in range(9)], 3),
    ],
)
def test_redirect_to_itself_is_followed_for_a_new_cookie(answers: list[bytes], followed: int) -> None:
    """The request differs from the last one then; but a server may invent cookies for ever."""
    assert follows(answers) == followed


def test_cookie_that_is_carried_or_not_kept_is_not_new() -> None:
    """One with another value is: a session that has expired is replaced."""
    assert follows([b"session=old"], carried=b"session=old") == 0
    assert follows([b"session=new"], carried=b"session=old") == 1
    assert follows([b"session=new"], COOKIES_ENABLED=False) == 0


def test_form_that_leads_to_its_own_page_is_followed() -> None:
    """That is another request, without the form's data."""
    form = Request(URL, method="POST", body=b"name=value")
    answer = Response(URL, status=303, headers={"Location": URL})
    result = RedirectMiddleware.from_crawler(new_crawler()).process_response(form, answer)
    assert isinstance(result, Request)
    assert result.method == "GET"
