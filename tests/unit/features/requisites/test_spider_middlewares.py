"""Requisites are offered with their page's depth, within their scope; the spider does not get their answers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response
from scrapy.utils.test import get_crawler

from bigcrawl.features.requisites.spider_middlewares import STEPS_MAX, PartFetchedError, RequisiteLinks
from bigcrawl.links import PAGE_PART
from bigcrawl.scheduler.adapter.registry import register
from bigcrawl.scheduler.queues.front_queues import URGENT
from bigcrawl.stats_buffer import stats_wanted
from bigcrawl.url.domain import PublicSuffixes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from scrapy.crawler import Crawler

    from bigcrawl.links import Links

PAGE = "http://www.a.example/page"
BODY = b"<img src=/b.png><img src=http://img.a.example/c.png><img src=http://d.example/e.png><a href=f>.</a>"
OWN, PLD, OTHER = "http://www.a.example/b.png", "http://img.a.example/c.png", "http://d.example/e.png"


@dataclass
class Noted:
    """A frontier that has room, and notes what it is offered."""

    waited: int = 0
    is_ours: bool = True
    offered: list[tuple[Links, list[str], int, str]] = field(default_factory=list)

    @property
    def flow(self) -> Noted:
        return self

    started = intake = flow

    async def wait_for_room(self) -> None:
        self.waited += 1

    def is_handed_out(self, request: Request) -> bool:
        return self.is_ours

    def pld_of(self, host: str) -> str:
        return PublicSuffixes.bundled(private=False).pld(host)

    def offer_links(self, links: Links, urls: Iterable[str], depth: int, page: str) -> int:
        self.offered.append((links, [*urls], depth, page))
        return 1


def made(frontier: Noted, **settings: Any) -> tuple[RequisiteLinks, Crawler]:
    crawler = get_crawler(settings_dict={"BIGCRAWL_REQUISITES": "any", **settings})
    register(crawler, frontier)  # type: ignore[arg-type]
    return RequisiteLinks.from_crawler(crawler), crawler


def answer(body: bytes = BODY, told: str = "text/html", meta: dict[str, int] | None = None) -> Response:
    return HtmlResponse(PAGE, body=body, headers={"Content-Type": told}, request=Request(PAGE, meta=meta))


def given_on(middleware: RequisiteLinks, response: Response) -> list[Any]:
    """What reaches the frontier's middleware if the spider yields an item."""

    async def output() -> AsyncIterator[Any]:
        yield {"item": 1}

    async def passed() -> list[Any]:
        return [one async for one in middleware.process_spider_output(response, output())]

    return asyncio.run(passed())


@pytest.mark.parametrize(("scope", "expected"), [("host", [OWN]), ("pld", [OWN, PLD]), ("any", [OWN, PLD, OTHER])])
def test_requisites_within_their_scope_are_offered(scope: str, expected: list[str]) -> None:
    """Urgently, one step away from a page of this depth; the spider's output passes."""
    frontier = Noted()
    middleware, crawler = made(frontier, BIGCRAWL_REQUISITES=scope)
    assert given_on(middleware, answer(meta={"depth": 3})) == [{"item": 1}]
    ((links, urls, depth, page),) = frontier.offered
    assert (urls, depth, page, frontier.waited) == (expected, 3, PAGE, 1)
    assert (links.priority, links.meta, links.callback) == (URGENT, {PAGE_PART: 1}, None)
    crawler.signals.send_catch_log(stats_wanted)
    assert crawler.stats is not None
    stats = {name: crawler.stats.get_value(f"bigcrawl/requisites/{name}", 0) for name in ("found", "outside", "sent")}
    assert stats == {"found": 3, "outside": 3 - len(expected), "sent": 1}


def test_a_page_has_so_many_at_most() -> None:
    frontier = Noted()
    given_on(made(frontier, BIGCRAWL_REQUISITES_MAX=2)[0], answer())
    assert [urls for _, urls, *_ in frontier.offered] == [[OWN, PLD]]


def test_a_part_of_a_page_is_kept_from_the_spider() -> None:
    """Its style sheets are read, a step further away; a page that answers in its place is not."""
    frontier = Noted()
    middleware, _ = made(frontier)
    sheet = answer(b"a {b: url(/b.png)}", "text/css; charset=utf-8", {PAGE_PART: 2})
    with pytest.raises(PartFetchedError) as raised:
        middleware.process_spider_input(sheet)
    handled = middleware.process_spider_exception(sheet, raised.value)

    async def drained() -> list[Any]:
        assert handled is not None
        return [one async for one in handled]

    assert asyncio.run(drained()) == []
    assert [(links.meta, urls) for links, urls, *_ in frontier.offered] == [({PAGE_PART: 3}, [OWN])]
    assert middleware.process_spider_exception(sheet, ValueError()) is None
    given_on(middleware, answer(meta={PAGE_PART: 1}))
    given_on(middleware, answer(b"a {b: url(/b.png)}", "text/css", {PAGE_PART: STEPS_MAX}))
    assert len(frontier.offered) == 1


def test_other_answers_have_no_requisites() -> None:
    """Neither of another type, nor beside the frontier, nor without one; a style sheet or module that is a page has."""
    frontier = Noted()
    middleware, _ = made(frontier)
    middleware.process_spider_input(answer())
    given_on(middleware, answer(told="text/plain"))
    given_on(middleware, answer(b"nothing"))
    assert frontier.offered == []
    given_on(middleware, answer(b"a {b: url(/b.png)}", "text/css"))
    given_on(middleware, answer(b"import './b.png'", "application/javascript"))
    assert [urls for _, urls, *_ in frontier.offered] == [[OWN]] * 2
    frontier.is_ours = False
    given_on(middleware, answer())
    given_on(RequisiteLinks(get_crawler()), answer())
    assert len(frontier.offered) == 2
