"""Spider output on its way to the frontier: batches taken, requests passed on, spiders held back."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.exceptions import CloseSpider
from scrapy.http import HtmlResponse, Response
from scrapy.utils.test import get_crawler

from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.links import Links
from bigcrawl.middlewares.links import PORTION, LinksMiddleware
from bigcrawl.politeness.addresses import AddressGuard
from bigcrawl.scheduler.adapter.registry import register, register_notes
from bigcrawl.url.domain import PublicSuffixes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

PAGE = "http://a.example/dir/"


class Noted:
    """Notes how many pages had all their links noted."""

    ended = 0

    def end(self) -> None:
        self.ended += 1


class Frontier:
    """Notes what the middleware asks of a frontier, in order."""

    guard = AddressGuard(True)
    notes_servers = False
    is_open = True

    def __init__(self, *, starts: bool = True, has_room: bool = True, room_for: int = 0) -> None:
        self.room_for = room_for  # batches, before it is full for the first time
        self.starts = starts
        self.events: list[Any] = []
        self.parsed: list[str] = []
        self.unread: list[tuple[str, str]] = []
        self.noted = Noted()
        self.failed: BigcrawlError | None = None
        self.room = asyncio.Event()
        self.waited = asyncio.Event()
        if has_room:
            self.room.set()

    @property
    def intake(self) -> Frontier:
        """Notes what its intake is asked."""
        return self

    @property
    def flow(self) -> Frontier:
        """Notes how its spider is made to wait."""
        return self

    @property
    def start(self) -> Frontier:
        """Notes what becomes of the start requests."""
        return self

    @property
    def crawl(self) -> Frontier:
        """Knows which domain a host is of."""
        return self

    @property
    def started(self) -> Frontier:
        """Notes what its started requests are asked."""
        return self

    @property
    def node(self) -> Frontier:
        """Knows the crawl."""
        return self

    def pld_of(self, host: str) -> str:
        return PublicSuffixes.bundled().pld(host)

    async def claim(self) -> bool:
        self.events.append("claim")
        return self.starts

    async def end(self) -> None:
        self.events.append("end")

    async def give_up(self) -> None:
        self.events.append("give up")

    def record_start_request(self, request: Request) -> None:
        self.events.append(("start", request.url))

    def links_of(self, request: Request | None) -> tuple[Noted, ...]:
        assert request is not None
        return (self.noted,)

    def record_found(self, request: Request, page: str, noted_by: tuple[Noted, ...], address: str) -> None:
        assert not address, "nobody asks for it"
        assert noted_by == (self.noted,)
        self.events.append(("found", request.url, page))

    def offer_links(
        self,
        links: Links,
        urls: Iterable[str],
        depth: int,
        page: str = "",
        *,
        starts: bool = False,
        noted_by: tuple[Noted, ...] = (),
        address: str = "",
    ) -> int:
        assert not address, "nobody asks for it"
        assert depth == 0 or not starts, "what was found on a page is no start"
        assert noted_by == ((self.noted,) if page else ())
        offered = list(urls)
        self.events.append(("links", offered, depth))
        if len(self.events) == self.room_for:
            self.room.clear()
        return len(offered)

    def record_modified(self, modified: Mapping[str, int], found_at: str) -> None:
        self.events.append(("modified", modified, found_at))

    async def wait_for_room(self) -> None:
        if not self.room.is_set():
            self.waited.set()
        await self.room.wait()

    def record_running(self, request: Request | None) -> None:
        """The watchdog is not on."""

    def record_unread_page(self, request: Request, reason: str) -> None:
        self.unread.append((request.url, reason))

    def record_page(self, response: Response) -> None:
        """Nobody asks for copies."""

    def record_parsed(self, request: Request | None) -> None:
        assert request is not None
        self.parsed.append(request.url)

    def fail(self, error: BigcrawlError) -> None:
        self.failed = error


class Desk:
    """The middleware of a crawler, with or without our frontier."""

    def __init__(self, frontier: Frontier | None, **settings: Any) -> None:
        self.crawler = get_crawler(Spider, settings)
        self.crawler.spider = Spider(name="test")
        self.frontier = frontier
        if frontier is not None:
            register(self.crawler, frontier)  # type: ignore[arg-type]
        self.middleware = LinksMiddleware.from_crawler(self.crawler)

    async def start(self, *outputs: Any) -> list[Any]:
        return [output async for output in self.middleware.process_start(given(*outputs))]

    async def page(self, *outputs: Any, depth: int = 0) -> list[Any]:
        response = Response(PAGE, request=Request(PAGE, meta={"depth": depth}))
        return [output async for output in self.middleware.process_spider_output(response, given(*outputs))]

    def stat(self, name: str) -> Any:
        """What the crawl's stats say at its end."""
        self.crawler.signals.send_catch_log(signals.spider_closed)
        assert self.crawler.stats is not None
        return self.crawler.stats.get_value(f"bigcrawl/{name}")


async def given(*outputs: Any) -> AsyncIterator[Any]:
    for output in outputs:
        if isinstance(output, Exception):
            raise output
        yield output


def test_the_links_of_a_page_end_when_the_spider_is_done_with_it() -> None:
    """Whoever notes them learns that it has all; if a callback fails half-way, it never does."""

    async def scenario() -> None:
        frontier = Frontier()
        desk = Desk(frontier)
        await desk.page(Request("http://b.example/"), Links(["http://c.example/"]), Links(["http://d.example/"]))
        assert frontier.noted.ended == 1
        with pytest.raises(ZeroDivisionError):
            await desk.page(Links(["http://c.example/"]), ZeroDivisionError())
        assert frontier.noted.ended == 1

    asyncio.run(scenario())


def test_links_are_taken_and_everything_else_is_passed_on() -> None:
    """Requests and items go their way, in order; a batch goes to the frontier, one deeper than its page."""

    async def scenario() -> None:
        desk = Desk(Frontier())
        request, item = Request("http://b.example/"), {"title": "x"}
        links = Links(["http://c.example/", "d"], base=PAGE)
        assert await desk.page(request, links, item, depth=4) == [request, item]
        assert desk.frontier is not None
        assert desk.frontier.events == [
            ("found", "http://b.example/", PAGE),
            ("links", ["http://c.example/", "http://a.example/dir/d"], 5),
        ]
        assert (desk.stat("links/found"), desk.stat("links/sent")) == (2, 2)

    asyncio.run(scenario())


def test_what_a_site_says_of_changes_is_passed_on_with_the_page_that_says_it() -> None:
    """Once for a batch, after its links."""

    async def scenario() -> None:
        desk = Desk(frontier := Frontier())
        links = Links([f"http://a.example/{n}" for n in range(1_500)], modified={"http://a.example/1": 7})
        await desk.page(links, Links(["http://a.example/x"]))
        assert [event[0] for event in frontier.events] == ["links", "links", "modified", "links"]
        assert frontier.events[2] == ("modified", links.modified, PAGE)

    asyncio.run(scenario())


def test_url_that_cannot_be_crawled_is_counted_with_its_reason() -> None:
    """No URL, too long, offsite: each drop has its stat, and none takes the others with it."""

    async def scenario() -> None:
        desk = Desk(Frontier(), BIGCRAWL_URL_BYTES_MAX=100)
        desk.crawler.spider.allowed_domains = ["a.example"]  # type: ignore[union-attr]
        good = ["http://a.example/", "http://sub.a.example/"]
        bad = ["mailto:x@a.example", "http://a.example/" + "x" * 100, "http://nota.example/"]
        await desk.page(Links([*bad, *good]))
        assert desk.frontier is not None
        assert desk.frontier.events == [("links", good, 1)]
        reasons = ("url", "url-too-long", "offsite")
        assert [desk.stat(f"dropped/{reason}") for reason in reasons] == [1, 1, 1]

    asyncio.run(scenario())


def test_canonical_urls_are_not_made_canonical_again_but_measured() -> None:
    """What came from a page goes on as it is; one that is too long goes, and takes none with it."""

    async def scenario() -> None:
        desk = Desk(Frontier(), BIGCRAWL_URL_BYTES_MAX=100)
        short = ["http://b.example/B/../x", "http://c.example/"]  # nobody looks whether it is true
        longest = "http://a.example/" + "x" * (100 - len("http://a.example/"))
        await desk.page(Links([*short, longest], canonical=True))
        await desk.page(Links([short[0], longest + "x", short[1]], canonical=True))
        await desk.page(Links([], canonical=True))
        assert desk.frontier is not None
        assert desk.frontier.events == [("links", [*short, longest], 1), ("links", short, 1), ("links", [], 1)]
        assert desk.stat("dropped/url-too-long") == 1
        assert (desk.stat("links/found"), desk.stat("links/sent")) == (6, 5)

    asyncio.run(scenario())


@pytest.mark.parametrize("canonical", [True, False])
def test_domains_are_of_the_host_and_of_nothing_else(canonical: bool) -> None:
    """Port and the dot at the end do not count; a domain elsewhere in the URL does not either."""

    async def scenario() -> None:
        desk = Desk(Frontier())
        desk.crawler.spider.allowed_domains = ["a.example", "::1"]  # type: ignore[union-attr]
        good = ["http://a.example:8080/", "https://a.example/", "http://x.a.example./y", "http://[::1]:80/"]
        bad = [
            "http://b.example/a.example",
            "http://b.example/a.example@b.example",
            "http://xa.example/",
            "http://b.example/?a.example",
        ]
        links = Links([*good, *bad, *good], canonical=canonical)
        await desk.page(links)
        desk.crawler.spider.allowed_domains = ["b.example"]  # type: ignore[union-attr]
        await desk.page(links)
        assert desk.frontier is not None
        found = [[url.replace(":80/", "/") for url in event[1]] for event in desk.frontier.events]
        shown = [url.replace(":80/", "/") for url in good]
        assert found == [shown * 2, [bad[0], bad[1], bad[3]]]

    asyncio.run(scenario())


def test_depth_limit_holds_for_batches() -> None:
    """Scrapy's DEPTH_LIMIT, which its own middleware applies to Requests only."""

    async def scenario() -> None:
        desk = Desk(Frontier(), DEPTH_LIMIT=2)
        await desk.page(Links(["http://b.example/"]), depth=1)
        await desk.page(Links(["http://b.example/"] * 3), depth=2)
        assert desk.frontier is not None
        assert len(desk.frontier.events) == 1
        assert desk.stat("dropped/depth") == 3
        assert desk.frontier.unread == [(PAGE, "depth")]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("outputs", "is_done"),
    [
        pytest.param([], True, id="nothing"),
        pytest.param([Links([f"{PAGE}x"]), Request(f"{PAGE}y")], True, id="links"),
        pytest.param([Links([f"{PAGE}x"]), {"an": "item"}], False, id="item"),
    ],
)
def test_page_is_parsed_when_its_callback_returns_without_items(outputs: list[Any], is_done: bool) -> None:
    """An item may still be in a pipeline of the project's."""
    frontier = Frontier()
    asyncio.run(Desk(frontier).page(*outputs))
    assert frontier.parsed == [PAGE] * is_done


def test_page_whose_callback_fails_is_not_parsed() -> None:
    async def spider() -> AsyncIterator[Any]:
        yield Links([f"{PAGE}x"])
        raise ValueError("the spider's own")

    async def scenario() -> None:
        frontier = Frontier()
        response = Response(PAGE, request=Request(PAGE))
        with pytest.raises(ValueError, match="the spider's own"):
            [output async for output in Desk(frontier).middleware.process_spider_output(response, spider())]
        assert frontier.parsed == []

    asyncio.run(scenario())


def test_spider_waits_while_the_frontier_is_full() -> None:
    """What it gives is not offered, and more not asked for, before there is room."""

    async def scenario() -> None:
        frontier = Frontier(has_room=False)
        desk = Desk(frontier)
        asked: list[str] = []

        async def spider() -> AsyncIterator[Any]:
            for host in ("b", "c"):
                asked.append(host)
                yield Links([f"http://{host}.example/"])

        response = Response(PAGE, request=Request(PAGE))
        outputs = desk.middleware.process_spider_output(response, spider())
        work = asyncio.ensure_future(anext(outputs, None))
        await asyncio.wait_for(frontier.waited.wait(), 60)
        assert (asked, frontier.events) == (["b"], [])
        frontier.room.set()
        await work
        assert asked == ["b", "c"]
        assert len(frontier.events) == 2

    asyncio.run(scenario())


def test_a_large_batch_is_offered_in_portions_each_when_there_is_room() -> None:
    """A page with many links does not hold the loop, and the frontier may say stop in the middle of it."""

    async def scenario() -> None:
        frontier = Frontier(room_for=1)
        desk = Desk(frontier)
        urls = [f"http://b.example/{n}" for n in range(2 * PORTION + 1)]
        response = Response(PAGE, request=Request(PAGE))
        outputs = desk.middleware.process_spider_output(response, given(Links(urls)))
        work = asyncio.ensure_future(anext(outputs, None))
        await asyncio.wait_for(frontier.waited.wait(), 60)
        assert [len(offered) for _, offered, _ in frontier.events] == [PORTION]
        frontier.room.set()
        await work
        assert [len(offered) for _, offered, _ in frontier.events] == [PORTION, PORTION, 1]
        assert [url for _, offered, _ in frontier.events for url in offered] == urls
        assert desk.stat("links/found") == len(urls)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "domains", [["A.Example"], ("a.example.",), {"a.example", None}, ["B\u00dcCHER.example", "a.example"]]
)
def test_allowed_domains_are_names_in_any_spelling(domains: Any) -> None:
    """A host is compared in lower case and A-labels, however the spider writes it."""

    async def scenario() -> None:
        desk = Desk(Frontier())
        desk.crawler.spider.allowed_domains = domains  # type: ignore[union-attr]
        await desk.page(Links(["http://www.a.example/", "http://c.example/"]))
        await desk.page(Links(["http://xn--bcher-kva.example/"]))
        assert desk.frontier is not None
        assert desk.frontier.events[0] == ("links", ["http://www.a.example/"], 1)
        assert len(desk.frontier.events[1][1]) == len(domains) - 1 - (None in domains)

    asyncio.run(scenario())


@pytest.mark.parametrize("domains", [[None], [""]])
def test_allowed_domains_that_name_none_allow_none(domains: Any) -> None:
    """A list with nothing in it that is a name is no list that was left out."""

    async def scenario() -> None:
        desk = Desk(Frontier())
        desk.crawler.spider.allowed_domains = domains  # type: ignore[union-attr]
        await desk.page(Links(["http://a.example/"]))
        assert desk.frontier is not None
        assert desk.frontier.events == [("links", [], 1)]

    asyncio.run(scenario())


@pytest.mark.parametrize("domains", ["a.example", b"a.example", 7])
def test_allowed_domains_that_are_no_list_end_the_crawl_at_its_start(domains: Any) -> None:
    """A text is a list of its letters, and every link would be offsite: the error says what to write."""

    async def scenario() -> None:
        desk = Desk(Frontier())
        desk.crawler.spider.allowed_domains = domains  # type: ignore[union-attr]
        with pytest.raises(CloseSpider):
            await desk.start(Links(["http://a.example/"]))
        assert desk.frontier is not None
        assert isinstance(desk.frontier.failed, ConfigError)
        assert f"allowed_domains is {domains!r}" in str(desk.frontier.failed)
        assert "a list" in str(desk.frontier.failed)
        assert desk.frontier.events == []

    asyncio.run(scenario())


def test_wrong_arguments_of_a_spider_end_the_crawl_at_its_start() -> None:
    """On a node that does not run the start requests, too; anything else of that name is the spider's matter."""

    async def scenario() -> None:
        desk = Desk(Frontier(starts=False))
        spider: Any = desk.crawler.spider
        spider.wrong_arguments = ["a", "b"]
        assert await desk.start() == []
        spider.wrong_arguments = ConfigError("there is no topic")
        with pytest.raises(CloseSpider):
            await desk.start(Links(["http://a.example/"]))
        assert desk.frontier is not None
        assert desk.frontier.failed is spider.wrong_arguments
        assert desk.frontier.events == ["claim"]

    asyncio.run(scenario())


def test_start_is_claimed_first_and_said_to_be_done_last() -> None:
    """Requests are noted as start requests before the engine sees them; `end` only when all are out."""

    async def scenario() -> None:
        desk = Desk(Frontier())
        request = Request("http://b.example/")
        assert await desk.start(Links(["http://a.example/"]), request, {"item": 1}) == [request, {"item": 1}]
        assert desk.frontier is not None
        assert desk.frontier.events == [
            "claim",
            ("links", ["http://a.example/"], 0),
            ("start", request.url),
            "end",
        ]

    asyncio.run(scenario())


def test_start_of_another_node_is_not_run() -> None:
    """Done, or under way elsewhere: the spider's `start` is not even begun."""

    async def scenario() -> None:
        desk = Desk(Frontier(starts=False))
        assert await desk.start(ZeroDivisionError()) == []
        assert desk.frontier is not None
        assert desk.frontier.events == ["claim"]

    asyncio.run(scenario())


def test_start_that_fails_is_given_up_and_its_error_is_the_spiders() -> None:
    """An exception of the spider leaves the start undone, so that the crawl neither hangs nor forgets it."""

    async def scenario() -> None:
        desk = Desk(Frontier())
        with pytest.raises(ZeroDivisionError):
            await desk.start(ZeroDivisionError())
        assert desk.frontier is not None
        assert desk.frontier.events == ["claim", "give up"]

    asyncio.run(scenario())


def test_start_that_must_not_go_on_ends_the_crawl() -> None:
    """An error of ours is told in one line and closes the spider."""

    async def scenario() -> None:
        desk = Desk(Frontier())
        error = ConfigError("no seeds")
        with pytest.raises(CloseSpider):
            await desk.start(error)
        assert desk.frontier is not None
        assert desk.frontier.failed is error

    asyncio.run(scenario())


def test_other_schedulers_get_everything_unchanged() -> None:
    """Without our frontier the middleware is not there."""

    async def scenario() -> None:
        desk = Desk(None)
        outputs = [Request("http://b.example/"), {"item": 1}]
        assert await desk.start(*outputs) == outputs
        assert await desk.page(*outputs) == outputs

    asyncio.run(scenario())


class Storage:
    """Notes what is to be kept beside pages."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, dict[str, str]]] = []
        self.original = ""

    def record_page(self, request: Request, fields: Mapping[str, str]) -> None:
        self.notes.append((request.url, dict(fields)))

    def record_conversion(self, request: Request, content_type: str, body: bytes) -> None:
        raise NotImplementedError

    def original_of(self, _request: Request) -> str:
        return self.original


AGENT = {"USER_AGENT": "ExampleBot/1.0 (+http://a.example/bot)"}
HTML = b"<html><head>%s</head><body><a href=/1>x</a><a href=/2 rel=nofollow>y</a></body></html>"


def page_of(head: bytes = b"", tags: Sequence[str] = ()) -> HtmlResponse:
    headers = {"Content-Type": "text/html", "X-Robots-Tag": list(tags)}
    return HtmlResponse(PAGE, request=Request(PAGE), body=HTML % head, headers=headers)


async def crawled(desk: Desk, response: Response, *outputs: Any) -> list[Any]:
    return [output async for output in desk.middleware.process_spider_output(response, given(*outputs))]


def links_sent(desk: Desk) -> list[str]:
    assert desk.frontier is not None
    return [url for event in desk.frontier.events if event[0] == "links" for url in event[1]]


@pytest.mark.parametrize(
    ("head", "tags", "followed"),
    [
        (b"", (), 1),
        (b"<meta name=robots content=nofollow>", (), 0),
        (b"<meta name=ROBOTS content='noarchive,NONE'>", (), 0),
        (b"<meta name=examplebot content=nofollow>", (), 0),
        (b"<meta name=otherbot content=nofollow>", (), 1),
        (b"<meta name=robots content='index, follow'>", (), 1),
        (b"", ("nofollow",), 0),
        (b"", ("noarchive", "noindex, NoFollow"), 0),
        (b"", ("ExampleBot: nofollow",), 0),
        (b"", ("otherbot: nofollow",), 1),
        (b"", ("otherbot: noindex, nofollow, examplebot: noarchive",), 1),
        (b"", ("unavailable_after: Wed, 25 Jun 2031 15:00:00 GMT, nofollow",), 0),
        (b"", ("max-snippet:20, \xff",), 1),
    ],
)
def test_links_are_followed_as_the_page_asks(head: bytes, tags: Sequence[str], followed: int) -> None:
    """Of a page with a link and a nofollow link: neither where the page closes all, the first else; counted."""

    async def scenario() -> None:
        for follow in (False, True):
            desk = Desk(Frontier(), **AGENT, BIGCRAWL_NOFOLLOW="follow" if follow else "obey")
            response = page_of(head, tags)
            await crawled(desk, response, Links.from_page(response))
            both = [f"http://a.example/{number}" for number in (1, 2)]
            assert links_sent(desk) == (both if follow else both[:followed])
            assert (desk.stat("dropped/nofollow") or 0) == (0 if follow else 2 - followed)

    asyncio.run(scenario())


@pytest.mark.parametrize("setting", ["follow", "drop"])
@pytest.mark.parametrize(
    ("original", "is_copy"),
    [
        ("", False),
        (PAGE, False),
        ("http://a.example/other", True),
        ("https://www.a.example:8443/#top", True),
        ("http://b.example/", False),
        ("http://a.example.evil.example/", False),
    ],
)
def test_links_of_a_copy_are_dropped_where_a_project_asks_for_it(setting: str, original: str, is_copy: bool) -> None:
    """Batches and requests, all counted; items pass. A page that is fetched again is no copy of itself.

    Nor is one that somebody else has published before, on a site of his own.
    """

    async def scenario() -> None:
        known: dict[str, Any] = {"BIGCRAWL_WARC_COPIES": "by-reference", "BIGCRAWL_WARC_DIR": "warc"}
        desk = Desk(Frontier(), **AGENT, **known, BIGCRAWL_COPY_LINKS=setting)
        storage = Storage()
        storage.original = original
        register_notes(desk.crawler, storage)
        response, item = page_of(), {"an": "item"}
        request = Request("http://a.example/3")
        passed = await crawled(desk, response, item, Links(urls=["http://a.example/1", "http://a.example/2"]), request)
        is_dropped = setting == "drop" and is_copy
        assert passed == ([item] if is_dropped else [item, request])
        assert len(links_sent(desk)) == (0 if is_dropped else 2)
        assert (desk.stat("dropped/copy") or 0) == (3 if is_dropped else 0)

    asyncio.run(scenario())


@pytest.mark.parametrize(("head", "passed"), [(b"", "1"), (b"<meta name=robots content=none>", "")])
def test_plain_requests_of_links_are_followed_as_the_page_asks(head: bytes, passed: str) -> None:
    """A GET of a link that is closed is left out; what is no link of the page, or a POST, is the spider's own."""

    async def scenario() -> None:
        desk = Desk(Frontier(), **AGENT)
        links = [Request(f"http://a.example/{number}#f") for number in (1, 2)]
        own = [Request("http://a.example/search?q"), Request("http://a.example/2", method="POST"), {"item": 1}]
        outputs = await crawled(desk, page_of(head), *links, *own)
        assert outputs == [link for link in links if link.url[-3] in passed] + own
        assert desk.stat("dropped/nofollow") == 2 - len(passed)
        assert await crawled(desk, Response(PAGE, request=Request(PAGE)), *links) == links

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("head", "tags", "fields"),
    [
        (b"", (), None),
        (b"<link rel=canonical href=/dir/>", (), None),
        (b"<meta name=robots content=follow>", ("otherbot: noindex",), None),
        (b"<link rel=canonical href=/other>", (), {"canonical": "http://a.example/other"}),
        (
            b"<meta name=robots content='noindex, noarchive'>",
            ("nosnippet",),
            {"robots": "noarchive, noindex, nosnippet"},
        ),
        (b"<link rel=canonical href=/o>", ("noindex",), {"robots": "noindex", "canonical": "http://a.example/o"}),
    ],
)
@pytest.mark.parametrize("by", ["links", "requests"])
def test_what_a_page_asks_for_is_noted_once(
    head: bytes, tags: Sequence[str], fields: dict[str, str] | None, by: str
) -> None:
    """Beside the page that was stored, however its links are yielded; nothing where it asks for nothing."""

    async def scenario() -> None:
        desk, storage, response = Desk(Frontier(), **AGENT), Storage(), page_of(head, tags)
        register_notes(desk.crawler, storage)
        links = Links.from_page(response)
        await crawled(desk, response, *([links, links] if by == "links" else map(Request, links.urls)))
        assert storage.notes == ([] if fields is None else [(PAGE, fields)])

    asyncio.run(scenario())


def test_canonical_url_of_a_header_counts() -> None:
    """As a PDF has it, which has no elements; one that cannot be read is none."""

    async def scenario() -> None:
        desk, storage = Desk(Frontier(), **AGENT), Storage()
        register_notes(desk.crawler, storage)
        for link in (
            '<http://a.example/x.html>; rel="canonical"',
            "<http://a.example/x>; rel=next",
            "<http://[::>; rel=canonical",
            '<?a,b>; title="a, b"; REL = "up Canonical"; rel=next, <http://a.example/y>; rel=canonical',
            b"</caf\xe9>;rel=canonical",
            '<http://a.example/x>; title="; rel=canonical',
        ):
            headers = {"Link": link}
            await crawled(desk, Response(PAGE, request=Request(PAGE), headers=headers))
        found = ["http://a.example/x.html", f"{PAGE}?a,b", "http://a.example/caf%E9"]
        assert storage.notes == [(PAGE, {"canonical": url}) for url in found]

    asyncio.run(scenario())


def test_sitemaps_are_told_and_what_the_spider_makes_of_them_is_queued() -> None:
    """Whichever way it gives it; what it cannot give, or fails with, is told in the log and harms nobody."""

    async def scenario() -> None:
        desk = Desk(Frontier())
        queued: list[Request] = []
        desk.crawler.engine = SimpleNamespace(crawl=queued.append)  # type: ignore[assignment]
        spider: Any = desk.crawler.spider
        request, links = Request("http://a.example/s.xml"), Links(["http://a.example/t.xml"])

        async def coroutine(urls: list[str], robots_url: str) -> list[Any]:
            return [request, links]

        async def generator(urls: list[str], robots_url: str) -> AsyncIterator[Any]:
            yield request
            yield links
            raise ValueError

        methods: list[Any] = [coroutine, generator, lambda urls, robots_url: [None, request, 3, links]]
        methods += [lambda urls, robots_url: None, lambda urls, robots_url: links, lambda urls: request]
        for method in methods:
            spider.parse_sitemap_urls = method
            await desk.middleware._sitemaps_found("http://a.example/robots.txt", ["http://a.example/s.xml"])
        assert queued == [request] * 3
        assert links_sent(desk) == list(links.urls) * 4
        assert desk.stat("sitemaps/found") == 6

    asyncio.run(scenario())
