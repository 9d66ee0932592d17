"""Inputs from outside, each through the code that meets it in a crawl; a target takes bytes and never fails."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request, Spider
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Headers, HtmlResponse, Response, TextResponse
from scrapy.utils.test import get_crawler

from bigcrawl.clock import SystemClock
from bigcrawl.config import read_config
from bigcrawl.content.sketches import sketches_of
from bigcrawl.downloads.response_builder import AnswerLimits, ResponseBuilder
from bigcrawl.downloads.signalling import SignalSender
from bigcrawl.exceptions import RequestNotStorableError
from bigcrawl.features.traps.settings import TrapConfig
from bigcrawl.features.traps.shape import UrlShapes
from bigcrawl.links import Links
from bigcrawl.listings import elements, feeds, sitemaps
from bigcrawl.middlewares.compression import CompressionMiddleware
from bigcrawl.middlewares.links import LinksMiddleware
from bigcrawl.middlewares.page_directives import PageDirectives
from bigcrawl.middlewares.redirects import MetaRefreshMiddleware, RedirectMiddleware
from bigcrawl.page_index.index_files import index_file
from bigcrawl.page_index.lookup import find_captures
from bigcrawl.page_index.search_key import search_key
from bigcrawl.politeness.backoff_policy import retry_after_ms
from bigcrawl.politeness.robots_policy import RobotsRules, kept_ms, verdict_on_response
from bigcrawl.revisiting.policies import RevisitPolicy, WaitBounds
from bigcrawl.revisiting.rules import CHANGE_RATE
from bigcrawl.revisiting.visit import Answer, Visit, digest_of, next_visit
from bigcrawl.scheduler.adapter.request_codec import encode_request
from bigcrawl.scheduler.node.link_graph import LinkGraph
from bigcrawl.scheduler.node.outbox import Outbox
from bigcrawl.scheduler.rules.budget_rules import RuleBook, parse_rules
from bigcrawl.scheduler.scheduler import Scheduler
from bigcrawl.spiders.broad import BroadSpider
from bigcrawl.spiders.feeds import FeedsSpider
from bigcrawl.url.canonical import UrlError, authority_of, canonicalize, host_of, join
from bigcrawl.url.domain import PublicSuffixes
from bigcrawl.warc.records import Exchange
from bigcrawl.warc.segments import WarcWriter
from bigcrawl.warc.verification import verify_file
from tests.support.keys import KEYS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

PAGE: Final = "http://site.example/dir/page.html"
KB: Final = 1 << 10

BYTES_MAX: Final = {
    "page": 6 << 20,
    "page_of_requests": 6 << 20,
    "page_of_one_url": 8_000,
    "robots": 500 * KB + 8 * KB,
    "head": 64 * KB,
    "redirect": 64 * KB,
    "url": 8 * KB,
    "sitemap": 16 << 20,
    "sitemap_slice": elements.SLICE_BYTES + sitemaps.LOCATION_BYTES_MAX,
    "feed": 6 << 20,
    "feed_slice": elements.SLICE_BYTES,
    "body": 16 << 20,
    "archived_url": 64 * KB,
    "stored_page": 128 * KB,
    "words": 6 << 20,
}
"""How large each input may become: what the settings let in by default; of pages, more than is read for links."""

TIMES: Final = 10
"""How often some targets do one thing, whose cost is then bounded by a tenth of what is allowed: 50 ms."""


class Desk:
    """A crawler with what stands between it and the network, made once; its frontier keeps nothing."""

    def __init__(self) -> None:
        self.crawler = get_crawler(Spider, {"BIGCRAWL_WARC_DIR": "", "DOWNLOAD_MAXSIZE": 16 << 20})
        self.crawler.spider = self.spider = self.crawler._create_spider("any")
        self.broad = BroadSpider(seeds="http://a.example/", sitemaps="1")
        self.feeds = FeedsSpider(seeds="http://a.example/")
        self.scheduler = Scheduler.from_crawler(self.crawler)
        self.suffixes = PublicSuffixes.bundled()
        self.links = LinksMiddleware.from_crawler(self.crawler)
        self.refreshes = MetaRefreshMiddleware.from_crawler(self.crawler)
        self.redirects = RedirectMiddleware.from_crawler(self.crawler)
        self.cookies = CookiesMiddleware.from_crawler(get_crawler(Spider, {"COOKIES_ENABLED": True}))
        self.compression = CompressionMiddleware.from_crawler(self.crawler)
        self.config = read_config(self.crawler.settings)
        limits = self.config.limits
        self.bounds = AnswerLimits(1 << 24, 0, limits.header_bytes_max, limits.headers_max)
        self.shapes = UrlShapes(self.config.feature_config(TrapConfig))
        self.rules = RuleBook(parse_rules({"re:/calendar/[0-9]+": {"budget": 1}}), self.suffixes.pld, KEYS.of_pld)
        self.signalling = SignalSender(self.crawler)
        self.visits = RevisitPolicy(CHANGE_RATE, WaitBounds(86_400, 3_600, 8_640_000))
        self.empty()

    def empty(self) -> None:
        """Forget what the last input left behind, as a flush to Redis does."""
        outbox = Outbox("node", "crawl", 200_000, SystemClock())
        graph = LinkGraph(self.suffixes.pld, KEYS.of_pld, 256)

        def offer_each(urls: Any) -> None:
            for url in urls:
                outbox.offer(url, KEYS.partition_of(self.suffixes.pld(url.host), 256))

        workload = SimpleNamespace(is_crowded=False)
        parts = SimpleNamespace(control=SimpleNamespace(discovers=True))
        crawl = SimpleNamespace(keys=KEYS)
        ownership = SimpleNamespace(wants_modified=False)
        node: Any = SimpleNamespace(
            outbox=outbox,
            crawl=crawl,
            link_graph=graph,
            offer=lambda url: offer_each((url,)),
            offer_each=offer_each,
            workload=workload,
            parts=parts,
            ownership=ownership,
        )
        self.scheduler.attach(node, self.spider)


def page(desk: Desk, data: bytes) -> None:
    """An HTML page of a spider that follows all its links."""
    response = _html(data)
    answer = desk.refreshes.process_response(Request(PAGE), response)
    if isinstance(answer, Response):
        _run(desk.links.process_spider_output(answer, _given(lambda: Links.from_page(response))))


def page_of_one_url(desk: Desk, data: bytes) -> None:
    """A page full of links to this URL, as written and below its own site, each with a number of its own."""
    written = data.replace(b"'", b"")
    links = min(20_000, (2 << 20) // (len(written) + 1))
    page(desk, b"".join(b"<a href='%b%d'><a href='/%d/%b'>" % (written, n, n, written) for n in range(links)))


def page_of_requests(desk: Desk, data: bytes) -> None:
    """An HTML page of a spider that yields a plain Request."""
    response = _html(data)
    _run(desk.links.process_spider_output(response, _given(lambda: Request("http://b.example/"))))


def robots(desk: Desk, data: bytes) -> None:
    """The path of a URL, a line end, and a robots.txt."""
    path, _, body = data.partition(b"\n")
    verdict = verdict_on_response(200, body, "bigcrawl")
    rules = RobotsRules.from_bytes(verdict.rules.to_bytes())
    for written in (path.decode("latin-1"), "a", "a" * 8_000):
        with suppress(UrlError):
            rules.forbidding_line(canonicalize(f"http://a.example/{written}"))
    for sitemap in verdict.sitemaps:
        join("http://a.example/robots.txt", sitemap)


def head(desk: Desk, data: bytes) -> None:
    """The head of an answer, line by line, and all that looks into headers."""
    request = Request(PAGE)
    builder = ResponseBuilder(request, desk.signalling, desk.bounds)
    for line in (b"HTTP/1.1 200 OK", *data.split(b"\n"), b""):
        if builder.header(line + b"\r\n") is not None:
            break
    if builder.error is not None:
        return
    builder.body(b"<html>")
    response = builder.response("127.0.0.1", None).replace(request=request)
    directives = PageDirectives("bigcrawl", response)
    directives.fields()
    desk.cookies.process_response(request, response)
    value = (response.headers.get(b"Retry-After") or b"").decode("latin-1")
    retry_after_ms(value, value, 0, 1_000)
    etag, modified = (response.headers.get(name) or b"" for name in ("ETag", "Last-Modified"))
    answer = Answer(200, digest_of(b""), etag, modified)
    visit = next_visit(next_visit(None, answer, 0, desk.visits), answer, 9_000_000, desk.visits)
    assert visit is not None
    assert Visit.unpack(visit.pack()) == visit
    kept_ms(b", ".join(response.headers.getlist(b"Cache-Control")).decode("latin-1"), value)
    if isinstance(response, TextResponse):
        assert isinstance(response.text, str)


def redirect(desk: Desk, data: bytes) -> None:
    """The Location of a redirect, as far as the frontier."""
    request = Request(PAGE)
    location = data.replace(b"\r", b"").replace(b"\n", b"")
    response = Response(PAGE, 302, headers={"Location": location}, request=request)
    answer = None
    with suppress(IgnoreRequest):  # it leads to itself
        answer = desk.redirects.process_response(request, response)
    join(PAGE, location.decode("latin-1"))
    if isinstance(answer, Request):
        with suppress(UrlError, RequestNotStorableError):
            encode_request(
                *(answer, desk.spider),
                key_of=KEYS.of_request,
                checked=True,
                url_bytes_max=8_192,
                traits=desk.shapes.traits,
            )


def url(desk: Desk, data: bytes) -> None:
    """A URL of any spelling: canonical form, host, pay-level domain, shape, rules."""
    for written in (data.decode("latin-1"), data.decode("utf-8", "replace")):
        for spelled in (written, f"http://{written}"):
            with suppress(UrlError):
                canonical = canonicalize(spelled)
                authority_of(canonical)
                desk.shapes.traits(canonical)
                desk.suffixes.pld(host_of(canonical))
                desk.rules.for_url(host_of(canonical), canonical)


def sitemap(desk: Desk, data: bytes) -> None:
    """A sitemap, packed or not."""
    response = Response("http://site.example/sitemap.xml", body=data, request=Request("http://site.example/"))
    _run(desk.links.process_spider_output(response, desk.broad.parse_sitemap(response)))


def sitemap_slice(desk: Desk, data: bytes) -> None:
    """What is read of a sitemap before the event loop has its turn."""
    for _ in range(TIMES):
        sitemaps.is_index(data)
        next(sitemaps.sitemap_entries(data, 50_000), None)


def feed(desk: Desk, data: bytes) -> None:
    """A feed, or a page that names some."""
    response = Response("http://site.example/feed.xml", body=data, request=Request("http://site.example/"))
    _run(desk.links.process_spider_output(response, desk.feeds.parse(response)))


def feed_slice(desk: Desk, data: bytes) -> None:
    """What is read of a feed before the event loop has its turn."""
    for _ in range(TIMES):
        feeds.is_feed(data)
        next(feeds.feed_entries(data, 50_000), None)


def archived_url(desk: Desk, data: bytes) -> None:
    """A URL in a WARC file, perhaps of others, when it is indexed."""
    for _ in range(TIMES):
        search_key(data)


def stored_page(desk: Desk, data: bytes) -> None:
    """A URL, and the head of its answer line by line: stored, indexed and found again."""
    written, *lines = data.split(b"\n")
    pairs = [(name, value) for name, _, value in (line.partition(b":") for line in lines)]
    url = f"http://a.example/{written.decode('latin-1')}"
    with TemporaryDirectory() as name:
        directory = Path(name)
        writer = WarcWriter(directory, "c", "n")
        writer.write(Exchange(url, "GET", pairs, b"", 200, pairs, b"page", 0, notes={"via": url}))
        writer.close()
        [path] = directory.glob("*.warc.gz")
        assert verify_file(path) == (4, 0, "")
        assert index_file(path, ["cdxj"]) == (path, 1, "")
        find_captures(directory, url)


def words(desk: Desk, data: bytes) -> None:
    """The words of a page, by which near copies are known."""
    for _ in range(TIMES):
        sketches_of([data])


def body(desk: Desk, data: bytes) -> None:
    """The names of encodings, a line end, and a body that is packed so."""
    encodings, _, packed = data.partition(b"\n")
    request = Request(PAGE)
    headers = {"Content-Type": "text/html", "Content-Encoding": encodings}
    with suppress(IgnoreRequest):
        desk.compression.process_response(request, Response(PAGE, body=packed, headers=headers, request=request))


TARGETS: Final[dict[str, Callable[[Desk, bytes], None]]] = {
    function.__name__: function
    for function in (
        *(page, page_of_requests, page_of_one_url, robots, head, redirect, url, sitemap, sitemap_slice, feed),
        *(feed_slice, body, archived_url, stored_page, words),
    )
}


def _html(data: bytes) -> HtmlResponse:
    request = Request(PAGE)
    return HtmlResponse(PAGE, headers=Headers({"Content-Type": "text/html"}), body=data, request=request)


async def _given(make: Callable[[], object]) -> AsyncIterator[Any]:
    yield make()


def _run(outputs: AsyncIterator[Any]) -> None:
    async def all_of_them() -> None:
        async for _ in outputs:
            pass

    asyncio.run(all_of_them())
