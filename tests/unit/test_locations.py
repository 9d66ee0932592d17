"""Every reader of a header that names a URL reads it as browsers do: one table, and each of its readers."""

from __future__ import annotations

import asyncio
import gzip
import html
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.utils.test import get_crawler

from bigcrawl.commands.pages.stored_links import LinkReader
from bigcrawl.links import Links, extract_links
from bigcrawl.middlewares.page_directives import PageDirectives
from bigcrawl.middlewares.redirects import MetaRefreshMiddleware, RedirectMiddleware
from bigcrawl.middlewares.robots import RobotsMiddleware
from bigcrawl.scheduler.adapter.request_codec import encode_request
from bigcrawl.scheduler.adapter.robots_fetch import ConnectionOptions, RobotsFetch
from bigcrawl.spiders.broad import BroadSpider
from bigcrawl.spiders.recrawl import RecrawlSpider
from bigcrawl.stored.catalogue import read_catalogue
from bigcrawl.stored.pages import PageReader, StoredPage
from bigcrawl.views.explain import page_of
from bigcrawl.warc.segments import WarcWriter
from tests.support.keys import KEYS
from tests.support.locations import ROWS, Row
from tests.support.running.tables import each
from tests.unit.downloads.crawlers import new_crawler
from tests.unit.stored.test_archives import response
from tests.unit.warc.reading import exchange

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VERBATIM = {"verbatim_url": True}  # as the frontier hands out what it has from links


def redirected(row: Row) -> str | None:
    return _led(RedirectMiddleware, row, status=302, headers={"Location": row.value})


def refreshed(row: Row) -> str | None:
    return _led(MetaRefreshMiddleware, row, headers={"Refresh": b"0; url=" + row.value})


def _led(middleware: type[RedirectMiddleware | MetaRefreshMiddleware], row: Row, **answer: Any) -> str | None:
    """The URL that the frontier would queue, by which it has the same key as a link to it."""
    request = Request(row.base, meta=VERBATIM)
    try:
        result = middleware.from_crawler(new_crawler()).process_response(request, Response(row.base, **answer))
    except IgnoreRequest:
        return row.base  # a redirect to itself
    if isinstance(result, Response):
        return None
    queued, url = encode_request(result, BroadSpider(), key_of=KEYS.of_request, checked=False, url_bytes_max=8_192)
    assert result.url.partition("#")[0] == url
    assert queued.key == KEYS.of_url(url)
    return url


STATS = get_crawler().stats


def graph(row: Row) -> str | None:
    page = StoredPage(row.base, 301, "HTTP/1.1", {b"Location": [b"", row.value]}, b"")
    return next(iter(LinkReader("b", 1 << 20, obeys_nofollow=True).links(page, row.base)), None)


def robots(row: Row) -> str | None:
    async def download(_request: Request) -> Response:
        return Response(row.base, status=301, headers={"Location": row.value})

    crawler: Any = SimpleNamespace(engine=SimpleNamespace(download_async=download), stats=STATS)
    return asyncio.run(RobotsFetch(crawler)(row.base)).location or None


def moved(row: Row) -> str | None:
    spider = RecrawlSpider.from_crawler(Crawler(RecrawlSpider), seeds="http://a.example/", changes="1")
    request = Request(row.base, meta={"bigcrawl_visit": {}})
    answer = Response(row.base, status=308, headers={"Location": row.value}, request=request)

    async def found() -> list[Any]:
        return [each async for each in spider.parse(answer)]

    links = [each for each in asyncio.run(found()) if isinstance(each, Links)]
    return next((url for batch in links for url in batch.urls), None)


def linked(row: Row) -> str | None:
    body = b"<base href=http://elsewhere.example/>"
    page = HtmlResponse(row.base, headers={"Refresh": b"300;url=" + row.value}, body=body)
    return next(iter(extract_links(page)), None)


def refreshed_by_its_page(row: Row) -> str | None:
    """The bytes stand in the page, which is in UTF-8: what is none has no place in it."""
    written = row.value.decode()
    page = f'<meta charset=utf-8><meta http-equiv=refresh content="0;url={html.escape(written)}">'.encode()
    answer = {"headers": {"Content-Type": "text/html"}, "body": page}
    request = Request(row.base, meta=VERBATIM)
    result = MetaRefreshMiddleware.from_crawler(new_crawler()).process_response(
        request, HtmlResponse(row.base, **answer)
    )
    return row.base if result.url == row.base and row.url == row.base else _url_of(result)


def _url_of(result: Request | Response) -> str | None:
    return result.url.partition("#")[0] if isinstance(result, Request) else None


def robots_alone(row: Row) -> str | None:
    """The middleware that works without the frontier: the URL that it asks next."""
    asked: list[str] = []

    async def download(request: Request) -> Response:
        asked.append(request.url)
        moved = {"status": 301, "headers": {"Location": row.value}} if len(asked) == 1 else {"status": 404}
        return Response(request.url, **moved)

    async def follow() -> None:
        crawler: Any = new_crawler(BIGCRAWL_CONTACT="tests@bigcrawl.org")
        crawler.engine = SimpleNamespace(download_async=download)
        await RobotsMiddleware.from_crawler(crawler)._fetch_following_redirects(row.base, ConnectionOptions({}, {}))

    asyncio.run(follow())
    return asked[1] if len(asked) > 1 else None


def head_first(row: Row) -> str | None:
    """A HEAD request leads to the target of its answer."""

    async def download(_request: Request) -> Response:
        return Response(row.base, status=302, headers={"Location": row.value})

    crawler: Any = SimpleNamespace(engine=SimpleNamespace(download_async=download), stats=STATS)
    return asyncio.run(RobotsFetch(crawler)(row.base, "HEAD")).location or None


def canonical(row: Row) -> str | None:
    answer = Response(row.base, headers={"Link": b"<" + row.value + b">; rel=canonical"})
    return PageDirectives("b", answer).page_canonical


@pytest.mark.parametrize(
    "read", [redirected, refreshed, graph, robots, robots_alone, head_first, moved, linked, canonical]
)
@each("row", ROWS, ids=lambda row: row.name)
def test_reader_goes_where_browsers_go(read: Callable[[Row], str | None], row: Row) -> None:
    """One page is not fetched under two URLs, and a robots.txt is looked for where it is."""
    assert read(row) == row.url


def _is_utf8(value: bytes) -> bool:
    return "\ufffd" not in value.decode("utf-8", "replace")


@each("row", [row for row in ROWS if _is_utf8(row.value)], ids=lambda row: row.name)
def test_page_refreshes_to_where_its_header_would(row: Row) -> None:
    """What both can say."""
    assert refreshed_by_its_page(row) == row.url


ABSOLUTE = [row for row in ROWS if row.value.strip().lower().startswith((b"http://", b"https://")) and row.url]


@pytest.mark.parametrize("row", ABSOLUTE, ids=lambda row: row.name)
@pytest.mark.parametrize("mark", [b"%b", b"<%b>"])
def test_archives_name_the_pages_that_browsers_ask_for(tmp_path: Path, row: Row, mark: bytes) -> None:
    """By their WARC-Target-URI, as written: stored pages are found by the URL that a spider asks for."""
    path = tmp_path / "x.warc.gz"
    path.write_bytes(
        gzip.compress(response("http://x.example/", b"page").replace(b"http://x.example/", mark % row.value))
    )
    catalogue = read_catalogue([path])
    assert row.url is not None
    assert catalogue.rank_of(row.url) == 0
    assert PageReader(catalogue, 0).read_page(catalogue.place_of_rank(0)).body == b"page"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_explanation_says_where_browsers_go(tmp_path: Path, row: Row) -> None:
    """Of the record of the page, whose own URL may be in angle brackets and unescaped."""
    writer = WarcWriter(tmp_path, "c", "n")
    answer = exchange(0, b"", url=row.base, status=302, response_headers=[(b"Location", row.value)])
    writer.write(answer)
    writer.close()
    data = {"url": row.base, "outcome": {"name": "status:302", "time": "1970-01-01T00:00:00Z"}}
    config: Any = SimpleNamespace(crawl=SimpleNamespace(warc_dir=tmp_path))
    page = page_of(config, data)
    assert page is not None
    assert page["redirects_to"] == row.url


def test_refresh_of_a_header_comes_before_that_of_the_page() -> None:
    """HTML, shared declarative refresh steps: the first one counts; the base is that of the document."""
    body = (
        b'<base href="/base/"><meta http-equiv=refresh content="0;url=meta"><meta http-equiv=refresh content="0;url=b">'
    )
    page = HtmlResponse("http://h.example/a/b", headers={"Refresh": "0;url=header"}, body=body)
    follow = MetaRefreshMiddleware.from_crawler(new_crawler()).process_response
    result = follow(Request(page.url), page)
    assert result.url == "http://h.example/a/header"
    del page.headers["Refresh"]
    assert follow(Request(page.url), page).url == "http://h.example/base/meta"


@pytest.mark.parametrize(
    "body",
    [
        b'<noscript><meta http-equiv=refresh content="0;url=/no"></noscript>',
        b'<script>"<meta http-equiv=refresh content=0;url=/no>"</script>',
        b'<!-- <meta http-equiv=refresh content="0;url=/no"> -->',
        b'<meta http-equiv=refresh content="100;url=/late">',
        b'<meta http-equiv=refresh content="0">',
        b'<meta name=refresh content="0;url=/no">',
    ],
)
def test_page_without_a_refresh_for_browsers_is_kept(body: bytes) -> None:
    """A late one is a link; METAREFRESH_IGNORE_TAGS and METAREFRESH_MAXDELAY are Scrapy's."""
    page = HtmlResponse("http://h.example/", body=body)
    assert MetaRefreshMiddleware.from_crawler(new_crawler()).process_response(Request(page.url), page) is page


def test_long_refresh_header_is_a_link_and_no_redirect() -> None:
    """Also of a page that is no HTML, for whoever reads its links."""
    page = Response("http://h.example/", headers={"Refresh": "3600; url=/next"})
    assert MetaRefreshMiddleware.from_crawler(new_crawler()).process_response(Request(page.url), page) is page
    assert extract_links(page) == ["http://h.example/next"]


@pytest.mark.parametrize("value", ["", "5", "x", "5; url=mailto:a@b.example"])
def test_refresh_header_that_names_no_page_is_no_link(value: str) -> None:
    """The page itself, or nothing."""
    assert extract_links(Response("http://h.example/", headers={"Refresh": value})) == []
