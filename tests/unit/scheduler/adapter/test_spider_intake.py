"""What a spider finds: nothing is noted of it before it is safe, and what a request is depends on how it came."""

from __future__ import annotations

import asyncio
import gc
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from scrapy import Request, Spider

from bigcrawl.exceptions import RequestNotStorableError
from bigcrawl.features.revisits.fold import Revisits
from bigcrawl.links import Links
from bigcrawl.scheduler.adapter.request_codec import ENTRY, ONCE, jar_bytes
from bigcrawl.scheduler.records.member import unpack_member
from tests.support.keys import KEYS, request_key, url_key
from tests.unit.scheduler.records.test_held_urls import held_url
from tests.unit.scheduler.test_scheduler import new_scheduler
from tests.unit.scheduler.world import world

if TYPE_CHECKING:
    from pathlib import Path


def test_start_request_that_never_came_is_forgotten_with_it(tmp_path: Path) -> None:
    """A start request dropped on its way must not make a later request, at its address, a start request."""
    frontier = new_scheduler(tmp_path)
    for i in range(50):
        frontier.intake.record_start_request(Request(f"http://a.example/{i}"))
    gc.collect()
    assert len(frontier.intake._start_requests) == 0


@pytest.mark.parametrize(("outcome", "goes_behind"), [("status:301", False), ("status:500", True)])
def test_redirect_to_itself_is_no_retry(tmp_path: Path, outcome: str, *, goes_behind: bool) -> None:
    """Scrapy carries a URL's retries along with its redirects; only a failed try goes behind the others."""
    frontier = new_scheduler(tmp_path)
    handout = SimpleNamespace(ends=SimpleNamespace(may_come_again=False))
    node = SimpleNamespace(handout=handout, crawl=SimpleNamespace(keys=KEYS))
    frontier.attach(cast("Any", node), Spider(name="test"))
    before = {"retry_times": 1} if not goes_behind else {}
    started = Request("http://a.example/", meta=before)
    held = held_url(1)
    held.fields = held.fields._replace(key=request_key("http://a.example/", "GET", b""))
    held.outcome = outcome
    frontier.started.record_start(started, held)
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


def test_a_page_speaks_for_pages_of_its_own_domain_only(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """When they were changed is noted by key, unless no page is visited again; what is no URL is left out."""
    now_s = int(time.time())
    own = ["http://a.example/1", "http://www.a.example/2"]
    modified = dict.fromkeys([*own, "http://b.example/3", "x", ""], now_s)

    async def scenario(rule: str) -> dict[int, int]:
        async with world(tmp_path, crawl_name, redis_url, revisit=rule) as w:
            frontier, node = new_scheduler(tmp_path, revisit=rule), await w.joined()
            frontier.attach(node, Spider("test"))
            frontier.intake.record_modified(modified, "http://a.example/sitemap.xml")
            frontier.intake.record_modified(modified, "")
            return {
                k: s for each in node.ownership.features if isinstance(each, Revisits) for k, s in each.listed.items()
            }

    assert asyncio.run(scenario("change-rate")) == {url_key(url): now_s for url in own}
    assert asyncio.run(scenario("never")) == {}


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


def test_nothing_is_taken_before_the_node_has_joined(tmp_path: Path) -> None:
    """Neither links nor requests."""
    intake = new_scheduler(tmp_path).intake
    assert intake.offer_links(Links(["http://a.example/"]), ["http://a.example/"], 1) == 0
    assert not intake.take_request(Request("http://a.example/"))


def entry_request(entry: str, **more: Any) -> Request:
    return Request("http://a.example/", dont_filter=True, meta={ENTRY: entry, **more})


def test_entry_is_queued_once_whatever_was_seen(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Its key is its own, so a batch that is taken twice is recognised; one without `dont_filter` counts by its URL."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            frontier, node = new_scheduler(tmp_path), await w.joined()
            frontier.attach(node, Spider("test"))
            intake = frontier.intake
            assert frontier.enqueue_request(Request("http://a.example/"))

            def is_queued(request: Request) -> bool:
                intake.record_start_request(request)
                return frontier.enqueue_request(request)

            assert is_queued(entry_request("batch.1.0.0"))
            assert not is_queued(entry_request("batch.1.0.0"))
            assert is_queued(entry_request("batch.1.1.0"))
            assert not is_queued(entry_request("batch.1.2.0").replace(dont_filter=False))
            before = frontier.flow.offered()
            assert before == 3
            assert not frontier.flow.are_sent(before)
            await node.outbox.flush(w.client)
            assert frontier.flow.are_sent(before)
            # The spider's own request that copies the meta is no entry, and is queued each time as `dont_filter` says.
            assert all(frontier.enqueue_request(entry_request("batch.1.0.0")) for _ in range(2))

    asyncio.run(scenario())


def test_entry_is_tried_again_and_redirected_as_itself(tmp_path: Path) -> None:
    """Scrapy's retry, made of its meta, is the next try of the URL in process; its redirect is the entry's too."""
    frontier = new_scheduler(tmp_path)
    offered: list[Any] = []
    outbox = SimpleNamespace(remember=lambda _key: True)
    control = SimpleNamespace(control=SimpleNamespace(discovers=True))
    node: Any = SimpleNamespace(
        handout=SimpleNamespace(
            health=SimpleNamespace(is_failing=lambda *_: False), ends=SimpleNamespace(may_come_again=False)
        ),
        crawl=SimpleNamespace(keys=KEYS),
        outbox=outbox,
        offer=offered.append,
        link_graph=None,
        parts=control,
    )
    frontier.attach(node, Spider(name="test"))
    started = entry_request("batch.1.0.0")
    held = held_url(1)
    held.fields = held.fields._replace(key=KEYS.of_request(started.url, "GET", b"", jar_bytes("batch.1.0.0")))
    frontier.started.record_start(started, held)
    hop = {"redirect_times": 1, "redirect_urls": [started.url]}
    moved = [
        Request(f"http://b.example/{n}", dont_filter=True, meta={**started.meta, **hop, ENTRY: f"batch.1.{n}.0"})
        for n in (0, 1)
    ]
    assert all(frontier.enqueue_request(request) for request in moved)
    keys = [KEYS.of_request(moved[0].url, "GET", b"", jar_bytes("batch.1.0.0")), KEYS.of_url(moved[1].url)]
    assert [url.key for url in offered] == keys, "the second copied the meta of another entry"
    held.outcome = "status:500"
    assert frontier.enqueue_request(entry_request("batch.1.0.0", retry_times=1))
    assert held.next_order is not None


def test_request_is_queued_once_for_each_value(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Whatever was seen of its URL and whatever `dont_filter` says, and it is tried again and redirected under it."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            frontier, node = new_scheduler(tmp_path), await w.joined()
            frontier.attach(node, Spider("test"))

            def is_queued(value: object, url: str = "http://a.example/", **more: Any) -> bool:
                return frontier.enqueue_request(Request(url, meta={ONCE: value, **more}))

            assert frontier.enqueue_request(Request("http://a.example/"))
            assert [
                is_queued([1, 0]),
                is_queued([1, 0]),
                is_queued([1, 1]),
                is_queued([1, 0], "http://b.example/"),
            ] == [*(True, False, True, True)]
            assert not frontier.enqueue_request(Request("http://a.example/", dont_filter=True, meta={ONCE: [1, 0]}))
            started, held = Request("http://a.example/", meta={ONCE: [1, 0]}), held_url(1)
            key = node.crawl.keys.of_request(started.url, "GET", b"", jar_bytes([1, 0]))
            held.fields = held.fields._replace(key=key)
            frontier.started.record_start(started, held)
            before = frontier.flow.offered()
            hop = {"redirect_times": 1, "redirect_urls": [started.url]}
            assert [is_queued([1, 0], "http://c.example/", **hop) for _ in range(2)] == [True, False]
            held.outcome = "status:500"
            assert is_queued([1, 0], retry_times=1)
            assert (held.next_order is not None, frontier.flow.offered()) == (True, before + 1)

    asyncio.run(scenario())
