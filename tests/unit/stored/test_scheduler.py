"""Which request a stored page comes with, and when."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import FormRequest, Request, Spider
from scrapy.utils.test import get_crawler

from bigcrawl.links import Links
from bigcrawl.scheduler.adapter.registry import register_feeds
from bigcrawl.stored.pages import StoredPage
from bigcrawl.stored.scheduler import StoredScheduler, is_for_page
from tests.unit.stored.warc_files import page, stored

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl.warc.records import Exchange

A, B, C = (f"http://{name}.example/" for name in "abc")


class Desk:
    """A scheduler over some pages, without an engine: what it gives is over at once."""

    def __init__(self, directory: Path, *pages: Exchange, refers: bool = False, **settings: Any) -> None:
        path = stored(directory, *pages, refers=refers)
        self.crawler = get_crawler(Spider, {"BIGCRAWL_SOURCE": str(path), **settings})
        self.spider = self.crawler.spider = Spider.from_crawler(self.crawler, name="test")
        self.scheduler = StoredScheduler.from_crawler(self.crawler)

    async def open(self) -> None:
        await self.scheduler._open(self.spider)
        await self.scheduler.start.end()

    def ask(self, *requests: Request) -> list[bool]:
        return [self.scheduler.enqueue_request(request) for request in requests]

    def given(self) -> list[Request]:
        """All that it gives until it has nothing more."""
        return list(iter(self.scheduler.next_request, None))

    def bodies(self) -> list[bytes]:
        """What is stored for each of them."""
        return [found.body if (found := self.scheduler.page_of(request)) else b"" for request in self.given()]

    def count(self, key: str) -> int:
        self.scheduler._stats_buffer.flush()
        self.scheduler._asked._stats_buffer.flush()
        assert self.crawler.stats is not None
        found: int = self.crawler.stats.get_value(f"bigcrawl/source/{key}", 0)
        return found


@contextmanager
def desk(directory: Path, *pages: Exchange, refers: bool = False, **settings: Any) -> Iterator[Desk]:
    """A desk that is open, in an event loop's thread."""
    made = Desk(directory, *pages, refers=refers, **settings)
    asyncio.run(made.open())
    yield made
    asyncio.run(made.scheduler._close())


def test_requests_come_in_the_order_of_the_crawl_and_once(tmp_path: Path) -> None:
    """Whatever they are asked by; one with dont_filter each time; what is not stored is counted."""
    with desk(tmp_path, page(A), page(B), page(C)) as made:
        assert made.scheduler.intake.offer_links(Links([]), [C, A, "http://d.example/"], 3) == 2
        assert made.ask(Request(B), Request(C), Request(B, dont_filter=True), Request("http://d.example/")) == [
            *(True, False, True, False)
        ]
        given = made.given()
        assert [(request.url, request.meta.get("depth")) for request in given] == [(A, 3), (B, 0), (B, 0), (C, 3)]
        assert made.ask(Request(A), Request(A, dont_filter=True)) == [False, True]
        assert [request.url for request in made.given()] == [A]
        assert made.count("not-stored") == 2
        assert made.count("pages") == 5


def test_request_is_as_the_spider_wrote_it(tmp_path: Path) -> None:
    """Its URL's spelling, with its fragment, its callback's name and arguments; that of a link is canonical."""
    with desk(tmp_path, page("http://a.example/x%7E"), page(B)) as made:
        made.ask(Request("http://a.example/x%7E#part", cb_kwargs={"n": 1}, priority=3))
        made.scheduler.intake.offer_links(Links([], callback="parse"), [B], 0)
        written, linked = made.given()
        assert (written.url, written.cb_kwargs, written.priority) == ("http://a.example/x%7E#part", {"n": 1}, 3)
        assert linked.callback == made.spider.parse


def test_answer_is_that_to_the_same_method_and_body(tmp_path: Path) -> None:
    """A form has its own, however many were sent; a GET is answered by a GET, though a POST came last."""
    forms = [page(A, b"%d" % n, n, method="POST", request_body=b"q=%d" % n) for n in range(3)]
    with desk(tmp_path, page(A, b"get"), *forms) as made:
        asked = [FormRequest(A, formdata={"q": str(n)}) for n in (2, 0, 9)]
        assert made.ask(*asked, Request(A), asked[0]) == [True, True, True, True, False]
        assert sorted(made.bodies()) == [b"0", b"2", b"get"]
        assert made.count("not-stored") == 1


def test_copies_are_known_as_in_the_crawl(tmp_path: Path) -> None:
    """Those that are stored by reference: their links may be dropped then, too."""
    body = b"the same words " * 100
    with desk(tmp_path, page(A, body), page(B, body), page(C), refers=True) as made:
        made.ask(Request(A), Request(B), Request(C))
        assert [made.scheduler.copies.original_of(request) for request in made.given()] == ["", A, ""]


class Feeds:
    """A disk that is full for some calls."""

    def __init__(self, refusals: int) -> None:
        self.left = refusals

    @property
    def is_stuck(self) -> bool:
        return self.left > 0

    def flush(self) -> bool:
        self.left -= 1
        return not self.is_stuck


def test_no_page_is_given_while_the_disk_has_no_room_for_items(tmp_path: Path) -> None:
    """And the run does not end meanwhile."""
    with desk(tmp_path, page(A)) as made:
        feeds = Feeds(3)
        register_feeds(made.crawler, feeds)
        made.ask(Request(A))
        assert made.scheduler.next_request() is None
        assert made.scheduler.has_pending_requests()
        assert made.scheduler.next_request() is None
        assert [request.url for request in made.given()] == [A]
        feeds.left = 2
        assert made.scheduler.has_pending_requests()
        assert not made.scheduler.has_pending_requests()


def test_damaged_page_is_counted_and_told_once_for_its_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The next one is given in its place."""
    with desk(tmp_path, page(A, bytes(range(256)) * 200), page(B), page(C)) as made:
        [path] = tmp_path.glob("*.warc.gz")
        data = bytearray(path.read_bytes())
        place = made.scheduler._catalogue.place_of_rank(0)  # type: ignore[union-attr]
        data[place.offset : place.offset + 200] = bytes(200)
        path.write_bytes(data)
        made.ask(Request(A), Request(B))
        assert [request.url for request in made.given()] == [B]
        assert made.count("damaged") == 1
    assert caplog.text.count("scrapy frontier warc verify") == 1


@pytest.mark.parametrize(
    ("request_", "found"),
    [
        (Request(A, meta={"depth": 2}, headers={"Referer": B}), True),
        (Request(f"{A}#part", meta={"depth": 2}, headers={"Referer": B}), True),
        (Request(A, meta={"depth": 2, "redirect_urls": [C, B]}, headers={"Referer": C}), True),
        (Request(A, meta={"depth": 3}, headers={"Referer": B}), False),
        (Request(A, meta={"depth": 2}, headers={"Referer": C}), False),
        (Request(A, meta={"depth": 2}), False),
        (Request(f"{A}other", meta={"depth": 2}, headers={"Referer": B}), False),
    ],
)
def test_request_agrees_with_the_notes_of_its_page(request_: Request, found: bool) -> None:
    """URL as written, depth, and the page that led there: the one that was redirected, or the Referer."""
    assert is_for_page(request_, StoredPage(A, 200, "HTTP/1.1", {}, b"", depth=2, via=B)) is found
