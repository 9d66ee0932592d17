"""What a spider finds: nothing is noted of it before it is safe, and what a request is depends on how it came."""

from __future__ import annotations

import asyncio
import gc
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from scrapy import Request, Spider

from bigcrawl.exceptions import RequestNotStorableError
from bigcrawl.links import Links
from bigcrawl.scheduler.records.member import unpack_member
from tests.support.keys import KEYS, request_key
from tests.unit.scheduler.records.test_held_urls import held_url
from tests.unit.scheduler.test_scheduler import new_scheduler
from tests.unit.scheduler.world import world

if TYPE_CHECKING:
    from pathlib import Path


def test_start_request_that_never_came_is_forgotten_with_it(tmp_path: Path) -> None:
    """A start request dropped on its way must not make a later request, at its address, a start request."""
    frontier = new_scheduler(tmp_path)
    for i in range(50):
        frontier.intake.note_start_request(Request(f"http://a.example/{i}"))
    gc.collect()
    assert len(frontier.intake._start_requests) == 0


@pytest.mark.parametrize(("outcome", "goes_behind"), [("status:301", False), ("status:500", True)])
def test_redirect_to_itself_is_no_retry(tmp_path: Path, outcome: str, *, goes_behind: bool) -> None:
    """Scrapy carries a URL's retries along with its redirects; only a failed try goes behind the others."""
    frontier = new_scheduler(tmp_path)
    frontier.attach(cast("Any", SimpleNamespace(handout=None, keys=KEYS)), Spider(name="test"))
    before = {"retry_times": 1} if not goes_behind else {}
    started = Request("http://a.example/", meta=before)
    held = held_url(1)
    held.fields = held.fields._replace(key=request_key("http://a.example/", "GET", b""))
    held.outcome = outcome
    frontier.started.note_start(started, held)
    hop = {"redirect_times": 1, "redirect_urls": ["http://a.example/"]}
    after = {"retry_times": 1} | ({} if goes_behind else hop)
    assert frontier.enqueue_request(Request("http://a.example/", meta=after, dont_filter=True))
    assert (held.next_order is not None) is goes_behind
    assert unpack_member(held.next_try).attempts == held.fields.attempts + goes_behind


class Unstorable:
    """What msgpack cannot hold."""


@pytest.mark.parametrize("fields", [{"meta": {"x": Unstorable()}}, {"cb_kwargs": {"x": Unstorable()}}])
def test_links_refused_once_can_be_offered_later(
    tmp_path: Path, crawl_name: str, redis_url: str, fields: dict[str, Any]
) -> None:
    """A batch that cannot be stored fails before any of its URLs counts as offered lately."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            frontier, node = new_scheduler(tmp_path), await w.joined()
            frontier.attach(node, Spider("test"))
            urls = [f"http://a.example/{n}" for n in range(5)]
            with pytest.raises(RequestNotStorableError):
                frontier.intake.offer_links(Links(urls, **fields), urls, 1)
            assert (node.outbox.offered, node.outbox.dropped_recent) == (0, 0)
            assert frontier.intake.offer_links(Links(urls), urls, 1) == 5
            assert frontier.intake.offer_links(Links(urls), urls, 1) == 0
            assert (node.outbox.offered, node.outbox.dropped_recent) == (5, 5)

    asyncio.run(scenario())


class NamedSpider(Spider):
    name = "named"

    def parse_feed(self, response: Any) -> None:
        """Names a callback."""


@pytest.mark.parametrize("field_name", ["callback", "errback"])
def test_links_to_a_method_that_the_spider_lacks_are_refused(
    tmp_path: Path, crawl_name: str, redis_url: str, field_name: str
) -> None:
    """A name with a slip of the pen in it, or another object's method: said now, not with the first page."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            frontier = new_scheduler(tmp_path)
            node, spider = await w.joined(), NamedSpider()
            frontier.attach(node, spider)
            urls = ["http://a.example/1"]
            bad: tuple[Any, ...] = ("parse_fed", "name", w.web.__call__)
            for method in bad:
                with pytest.raises(RequestNotStorableError, match=f"{field_name} is ") as caught:
                    frontier.intake.offer_links(Links(urls, **{field_name: method}), urls, 1)
                assert f"{field_name}=self." in str(caught.value)
            assert node.outbox.offered == 0
            methods: tuple[Any, ...] = ("parse_feed", spider.parse_feed)
            for good in methods:
                assert frontier.intake.offer_links(Links(urls, **{field_name: good}), urls, 1) == (good == "parse_feed")

    asyncio.run(scenario())


def test_request_refused_once_can_be_queued_later(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """As with links."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            frontier = new_scheduler(tmp_path)
            frontier.attach(await w.joined(), Spider("test"))
            url = "http://a.example/"
            answers = [frontier.enqueue_request(Request(url, meta=meta)) for meta in ({"x": Unstorable()}, {}, {})]
            assert answers == [False, True, False]

    asyncio.run(scenario())
