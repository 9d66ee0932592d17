"""robots.txt through the engine: what is asked for, and what counts as an answer."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.downloadermiddlewares.httpproxy import HttpProxyMiddleware
from scrapy.exceptions import DownloadTimeoutError, IgnoreRequest, NotSupported
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from bigcrawl.links import Links
from bigcrawl.politeness.robots_policy import BODY_BYTES_MAX
from bigcrawl.scheduler.adapter.fetch_errors import UNPACKING, FetchAbortedError
from bigcrawl.scheduler.adapter.request_codec import encode_request, links_encoder
from bigcrawl.scheduler.adapter.robots_fetch import RobotsFetch, connection_of
from bigcrawl.scheduler.adapter.values.codec import ValueCodec
from bigcrawl.scheduler.gates.interfaces import Closed, FetchedBody
from tests.support.keys import request_key, url_key

URL = "http://a.example/robots.txt"


def not_packed() -> Exception:
    """What a body raises that is not packed as it says."""
    error = gzip.BadGzipFile("Not a gzipped file")
    error.add_note(UNPACKING)
    return error


class Engine:
    """Answers, or fails, as it is told; keeps the request."""

    def __init__(self, answer: Response | Exception) -> None:
        self.answer = answer
        self.asked: list[Request] = []

    async def download_async(self, request: Request) -> Response:
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def crawler_of(engine: Any) -> Any:
    return SimpleNamespace(engine=engine, stats=get_crawler().stats)


def fetched(answer: Response | Exception) -> FetchedBody:
    crawler = crawler_of(Engine(answer))
    return asyncio.run(RobotsFetch(crawler)(URL))


def test_files_are_counted_as_scrapys_middleware_counts_them() -> None:
    """By status or exception; a redirect, which is followed, and a HEAD are no such file."""
    crawler = crawler_of(None)
    moved = Response(URL, 301, headers={"Location": "/elsewhere"})
    for answer in (Response(URL), Response(URL, 404), moved, DownloadTimeoutError()):
        crawler.engine = Engine(answer)
        asyncio.run(RobotsFetch(crawler)(URL))
    asyncio.run(RobotsFetch(crawler_of(Engine(Response(URL))))(URL, "HEAD"))
    counts = {key.removeprefix("robotstxt/"): count for key, count in crawler.stats.get_stats().items()}
    assert counts == {
        "request_count": 3,
        "response_count": 2,
        "response_status_count/200": 1,
        "response_status_count/404": 1,
        f"exception_count/{DownloadTimeoutError}": 1,
    }


def test_answer_is_told_with_what_decides_over_it() -> None:
    """Status, body, where it leads, and how long it may be kept; several Cache-Control headers are one."""
    headers = {
        "Location": "/x",
        "Cache-Control": ["public", "max-age=9"],
        "Age": "3",
        "Retry-After": "4",
        "Date": "now",
    }
    answer = Response(URL, status=301, body=b"moved", headers=headers)
    assert fetched(answer) == FetchedBody(301, b"moved", "http://a.example/x", "public, max-age=9", "3", "4", "now")
    assert fetched(Response(URL, status=404)) == FetchedBody(404)


@pytest.mark.parametrize("flag", ["truncated-time", "dataloss"])
def test_half_a_file_is_no_answer(flag: str) -> None:
    """It would forbid less than the whole one; as for any other file that cannot be had, the last copy holds."""
    assert fetched(Response(URL, body=b"User-agent: *\nDis", flags=[flag])) == FetchedBody(None)


def test_file_that_was_cut_for_its_size_is_an_answer() -> None:
    """More of it than counts has come."""
    body = b"#" * (BODY_BYTES_MAX + 1)
    assert fetched(Response(URL, body=body, flags=["truncated"])) == FetchedBody(200, body)


@pytest.mark.parametrize(
    ("error", "failure"),
    [(DownloadTimeoutError("slow"), "error:timeout"), (IgnoreRequest("too large"), ""), (not_packed(), "")],
)
def test_failure_is_no_answer(error: Exception, failure: str) -> None:
    """Whatever it is, nothing is raised; where the host has failed, it is told how."""
    assert fetched(error) == FetchedBody(None, failure=failure)


@pytest.mark.parametrize("error", [ValueError("odd"), NotSupported("no handler"), OSError("of a library")])
def test_error_that_says_nothing_of_the_host_is_handed_on(error: Exception) -> None:
    """A handler that cannot be loaded, or raises errors of its own: the URL fails with this very error."""
    with pytest.raises(Closed) as closed:
        fetched(error)
    assert closed.value.error is error
    assert not closed.value.failure


def test_file_is_asked_for_as_its_page_connects() -> None:
    """With the keys that decide it, of whatever type, and no others; a damaged body has none."""
    engine = Engine(Response(URL))
    crawler = crawler_of(engine)
    fetch = RobotsFetch(crawler, ("proxy", "impersonate_args", "bindaddress"))
    meta = {"proxy": "http://p.example/", "impersonate_args": {"a": (1, 2)}, "other": 1, "dont_retry": False}
    page = Request("http://a.example/", meta=meta)
    queued, _ = encode_request(page, Spider(name="x"), key_of=request_key, checked=True, url_bytes_max=8192)
    for body in (queued.body, b"", b"damaged", links_encoder(Links([]), 0)(url_key(URL), URL).body):
        asyncio.run(fetch(URL, like=body))
    first, *others = (request.meta for request in engine.asked)
    assert (first["proxy"], first["impersonate_args"]) == ("http://p.example/", {"a": (1, 2)})
    assert first["dont_retry"] is True
    assert not {"other", "bindaddress"} & first.keys()
    assert not any("proxy" in meta for meta in others)


NAMED = "http://user:pass@p.example:3128"
WITHOUT = "http://p.example:3128"
OTHER = "http://q.example:3128"
BASIC = b"Basic dXNlcjpwYXNz"


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({"meta": {"proxy": NAMED}}, BASIC),
        ({"meta": {"proxy": WITHOUT}, "headers": {"Proxy-Authorization": "Own"}}, b"Own"),
        (
            {"meta": {"proxy": OTHER, "_auth_proxy": WITHOUT}, "headers": {"Proxy-Authorization": "x"}},
            None,
        ),
        ({"meta": {"proxy": None, "_auth_proxy": WITHOUT}, "headers": {"Proxy-Authorization": "x"}}, None),
        ({"headers": {"Proxy-Authorization": "x"}}, None),
    ],
)
@pytest.mark.parametrize("tries", [1, 2])
def test_proxy_is_told_the_name_and_password_of_the_page(
    fields: dict[str, Any], sent: bytes | None, tries: int
) -> None:
    """As Scrapy's middleware makes them: the next try has them in a header. No other proxy, and no host, gets them."""
    scrapys = HttpProxyMiddleware()
    scrapys.proxies = {}
    page = Request("http://a.example/", **fields)
    for _ in range(tries - 1):
        scrapys.process_request(page)
        page = page.copy()
    engine = Engine(Response(URL))
    crawler = crawler_of(engine)
    fetch = RobotsFetch(crawler, ("proxy",))
    queued, _ = encode_request(page, Spider(name="x"), key_of=request_key, checked=True, url_bytes_max=8192)
    asyncio.run(fetch(URL, like=queued.body))
    asyncio.run(fetch.fetch(URL, connection=connection_of(page, ("proxy",))))
    asyncio.run(RobotsFetch(crawler, ("bindaddress",))(URL, like=queued.body))
    scrapys.process_request(page)
    for asked in engine.asked[:2]:
        scrapys.process_request(asked)
        assert asked.headers.get("Proxy-Authorization") == page.headers.get("Proxy-Authorization") == sent
        assert asked.meta.get("proxy") == page.meta.get("proxy")
    assert not engine.asked[2].headers


def test_values_of_the_project_connect_too() -> None:
    """Such as an object of its own under a key that it has added; a message cannot name another one."""
    values = ValueCodec(Spider("x"), ["tests"])
    page = Request("http://a.example/", meta={"session": Session("a"), "proxy": WITHOUT})
    queued, _ = encode_request(
        page, Spider(name="x"), key_of=request_key, checked=True, url_bytes_max=8192, values=values
    )
    engine = Engine(Response(URL))
    crawler = crawler_of(engine)
    for read in (values, ValueCodec(Spider("x"), [])):
        asyncio.run(RobotsFetch(crawler, ("session", "proxy"), read)(URL, like=queued.body))
    assert [request.meta.get("session") for request in engine.asked] == [Session("a"), None]
    assert [request.meta["proxy"] for request in engine.asked] == [WITHOUT] * 2


@dataclass
class Session:
    name: str


def test_request_is_one_request_that_no_middleware_repeats_or_redirects() -> None:
    """And its body is broken off not below what must be read."""
    engine = Engine(Response(URL))
    crawler = crawler_of(engine)
    asyncio.run(RobotsFetch(crawler)(URL))
    meta = engine.asked[0].meta
    assert all(meta[key] for key in ("dont_retry", "dont_redirect", "handle_httpstatus_all", "download_truncate"))
    assert meta["download_maxsize"] > BODY_BYTES_MAX


def test_fetch_that_this_node_gave_up_says_nothing_of_the_host() -> None:
    """It stops, or its lease was over: the URL comes back for it."""
    with pytest.raises(Closed) as closed:
        fetched(FetchAbortedError("the node stops"))
    assert closed.value.retry_ms
    assert not closed.value.failure


def test_a_head_is_told_with_type_and_size() -> None:
    """The body that it announces does not come, so no limit of size ends it, and it is not half an answer."""
    headers = {"Content-Type": "application/pdf", "Content-Length": "99999999"}
    engine = Engine(Response(URL, status=200, headers=headers, flags=["dataloss"]))
    crawler = crawler_of(engine)
    found = asyncio.run(RobotsFetch(crawler)(URL, "HEAD"))
    assert found == FetchedBody(200, content_type=b"application/pdf", content_length=b"99999999")
    assert (engine.asked[0].method, engine.asked[0].meta["download_maxsize"]) == ("HEAD", 0)


def test_nothing_is_fetched_while_the_spider_opens() -> None:
    """The engine fails if a download ends before it can ask for requests."""
    engine: Any = Engine(Response(URL))
    engine._slot, engine.scraper = SimpleNamespace(closing=None), SimpleNamespace(slot=None)
    crawler = crawler_of(engine)

    async def scenario() -> None:
        fetching = asyncio.ensure_future(RobotsFetch(crawler)(URL))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not engine.asked
        engine.scraper.slot = object()
        assert (await fetching).status == 200

    asyncio.run(scenario())
