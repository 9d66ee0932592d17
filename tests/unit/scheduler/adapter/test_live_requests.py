"""Requests that hold what cannot be stored: this process hands them out as they are, another one what was stored."""

from __future__ import annotations

import asyncio
import shutil
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, Spider
from scrapy.utils.test import get_crawler

from bigcrawl.exceptions import RequestNotStorableError
from bigcrawl.links import Links
from bigcrawl.scheduler.adapter import live_requests
from bigcrawl.scheduler.adapter.fetch_errors import UrlRefusedError
from bigcrawl.scheduler.adapter.live_requests import LiveRequests
from bigcrawl.scheduler.adapter.request_codec import BODY_BYTES_MAX, ENTRY, LostRequestError
from bigcrawl.scheduler.adapter.spider_intake import check_methods
from bigcrawl.scheduler.adapter.values.codec import ValueCodec
from bigcrawl.scheduler.adapter.values.taught_types import TaughtType
from bigcrawl.scheduler.records.body import as_next_try, with_known
from bigcrawl.scheduler.records.held import Stage
from bigcrawl.scheduler.records.member import unpack_member
from tests.support.keys import KEYS, request_key
from tests.unit.middlewares.test_links import Desk
from tests.unit.scheduler.records.test_held_urls import held_url
from tests.unit.scheduler.test_scheduler import new_scheduler

if TYPE_CHECKING:
    from pathlib import Path

URL = "http://a.example/"


def nested(_: Any) -> None:
    """No method of a spider."""


class HoldingSpider(Spider):
    name = "holding"

    def parse_page(self, response: Any) -> None:
        """Names a callback."""

    def failed(self, failure: Any) -> None:
        """Names an errback."""


def live_of(*, keeps: bool = False) -> LiveRequests:
    """One of a process of its own."""
    spider, stats = HoldingSpider(), get_crawler(HoldingSpider).stats
    assert stats is not None
    return LiveRequests(spider, ValueCodec(spider), stats, keeps=keeps)


def body_of(live: LiveRequests, request: Request, before: bytes | None = None) -> bytes:
    return live.encode(request, before, key_of=request_key, checked=True, url_bytes_max=8192)[0].body


def plain_body(live: LiveRequests, **fields: Any) -> bytes:
    return body_of(live, Request(URL, live.spider.parse_page, **fields))  # type: ignore[attr-defined]


def test_try_keeps_what_was_added_and_another_process_has_the_stored_one() -> None:
    """What the spider gave is stored; of a value that was replaced by one that cannot be, the stored one serves."""
    here, there = live_of(), live_of()
    before = plain_body(here, meta={"given": 1, "replaced": "old"}, cb_kwargs={"a": 1})
    handle = threading.Lock()
    meta = {"given": 1, "replaced": handle, "added": handle, "plain": 2, "retry_times": 1, "download_latency": 0.1}
    tried = Request(URL, nested, meta=meta, cb_kwargs={"a": handle, "page": handle})
    body = body_of(here, tried, before)
    again = here.decode(body)
    assert (again.meta["added"], again.cb_kwargs["page"], again.callback) == (handle, handle, nested)
    assert "download_latency" not in again.meta, "it belongs to the fetch before"
    found = there.decode(body)
    assert found.callback == there.spider.parse_page  # type: ignore[attr-defined]
    assert found.cb_kwargs == {"a": 1}
    assert found.meta == {"given": 1, "replaced": "old", "plain": 2, "retry_times": 1, "depth": 0}


def test_request_is_kept_until_it_has_ended_for_good() -> None:
    """A fetch that was given up comes back with the same body; nothing stays after the end."""
    live = live_of()
    body = body_of(live, Request(URL, meta={"added": threading.Lock()}), plain_body(live))
    request = live.decode(body)
    live.end(request, comes_back=True)
    request = live.decode(body)
    assert "added" in request.meta
    live.end(request, comes_back=False)
    assert "added" not in live.decode(body).meta
    assert "helpful=0 large=0 given=0" in repr(live)
    live.end(Request(URL), comes_back=False)


def test_engine_is_given_no_request_that_it_still_has() -> None:
    """It counts requests by identity; and what one fetch does to the meta is not seen by the next."""
    live = live_of()
    tried = Request(URL, meta={"added": threading.Lock()})
    body = body_of(live, tried, plain_body(live))
    first = live.decode(body)
    first.meta["added"] = "changed"
    second = live.decode(body)
    assert len({id(request) for request in (tried, first, second)}) == 3
    assert second.meta["added"] is tried.meta["added"]
    live.end(first, comes_back=False)
    live.end(second, comes_back=False)
    assert "given=0" in repr(live)


def test_spider_s_own_objects_are_refused_or_kept_and_lost() -> None:
    """Refused by default. Kept, they are needed: without them the request is not run, in this try or the next."""
    handle = threading.Lock()
    request = Request(URL, nested, meta={"handle": handle})
    with pytest.raises(RequestNotStorableError, match=r"BIGCRAWL_STORED_TYPES.*BIGCRAWL_NOT_STORABLE"):
        body_of(live_of(), request.replace(callback=None))
    here, there = live_of(keeps=True), live_of(keeps=True)
    body = body_of(here, request)
    tried = request.replace(meta={"handle": handle, "retry_times": 1})
    again = body_of(here, tried, body)
    for each, tries in ((body, None), (again, 1)):
        found = here.decode(each)
        assert (found.meta["handle"], found.callback) == (handle, nested)
        assert found.meta.get("retry_times") == tries
        with pytest.raises(LostRequestError) as lost:
            there.decode(each)
        assert (lost.value.request.url, lost.value.request.callback) == (URL, None)


def test_request_that_has_become_too_large_is_tried_again() -> None:
    """Large values that were added are left out; those that were given, or large bodies, are refused as before."""
    here, there = live_of(), live_of()
    before = plain_body(here, meta={"given": "x"})
    large = "x" * BODY_BYTES_MAX
    tried = Request(URL, meta={"given": "x", "page": large, "retry_times": 1})
    body = body_of(here, tried, before)
    assert here.decode(body).meta["page"] is large
    assert there.decode(body).meta == {"given": "x", "retry_times": 1, "depth": 0}
    for refused in (Request(URL, meta={"given": large}), Request(URL, method="POST", body=large)):
        with pytest.raises(RequestNotStorableError, match="the whole is"):
            body_of(here, refused, before)
    assert "helpful=0 large=1" in repr(here), "what is refused is not kept"
    with pytest.raises(RequestNotStorableError, match="the whole is"):
        body_of(live_of(keeps=True), tried)


def test_few_large_requests_are_kept() -> None:
    """Each holds megabytes; the rest of the others serves."""
    live = live_of()
    before = plain_body(live)
    large = "x" * BODY_BYTES_MAX
    bodies = [body_of(live, Request(f"{URL}{n}", meta={"page": large}), before) for n in range(20)]
    assert ["page" in live.decode(body).meta for body in bodies] == [False] * 4 + [True] * 16


def test_callback_that_was_renamed_is_that_of_the_next_try_too() -> None:
    """The stored request names the old method; its next try, which holds a handle, was lost."""
    old = plain_body(live_of()).replace(b"parse_page", b"parse_gone")
    spider = HoldingSpider()
    stats = get_crawler(HoldingSpider).stats
    assert stats is not None
    names = {"parse_gone": "parse_page"}
    here = LiveRequests(spider, ValueCodec(spider), stats, keeps=False, instead_of=lambda name: names.get(name, name))
    tried = here.decode(old).replace(meta={"added": threading.Lock()})
    body = body_of(here, tried, old)
    assert here.decode(body).callback == spider.parse_page
    assert body.count(b"parse_page") == 1


class Broken:
    """Whatever is asked of it, it raises."""

    def _fail(self, *_: Any) -> Any:
        raise ZeroDivisionError

    __eq__ = __repr__ = __str__ = __bool__ = __len__ = __iter__ = _fail

    __hash__ = object.__hash__


class Key:
    """It has no text."""

    def __repr__(self) -> str:
        raise ZeroDivisionError


class BrokenError(Exception):
    """Its text is an error, too."""

    def __str__(self) -> str:
        raise ZeroDivisionError


def raising(_: Any) -> Any:
    raise BrokenError


@pytest.mark.parametrize("keeps", [False, True])
def test_objects_that_raise_whatever_they_are_asked(*, keeps: bool) -> None:
    """As values, as keys, in taught types, in circles and very deep: refused, or kept."""
    circle: list[Any] = []
    circle.append((circle,))
    deep: Any = ()
    for _ in range(5_000):
        deep = (deep,)
    spider, stats = HoldingSpider(), get_crawler(HoldingSpider).stats
    assert stats is not None
    odds: list[dict[Any, Any]] = [{"x": circle}, {"x": deep}]
    odds += [{"x": Broken()}, {Key(): 1}, {"x": [{Broken(): Key()}]}]
    taught = {f"{__name__}.Broken": TaughtType(raising, raising)}
    for types in ({}, taught):
        live = LiveRequests(spider, ValueCodec(spider, types=types), stats, keeps=keeps)
        before = plain_body(live)
        for odd in odds:
            assert body_of(live, Request(URL, meta=dict(odd)), before)
            if keeps:
                assert live.decode(body_of(live, Request(URL, meta=dict(odd)))).meta.keys() >= odd.keys()
            else:
                with pytest.raises(RequestNotStorableError):
                    body_of(live, Request(URL, meta=dict(odd)))


def test_oldest_makes_room(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """For URLs that were seen before, and never come back; those that were needed are counted when they are taken."""
    monkeypatch.setattr(live_requests, "REQUESTS_MAX", 2)
    live = live_of(keeps=True)
    requests = [Request(f"{URL}{n}", meta={"handle": threading.Lock()}) for n in range(3)]
    bodies = [body_of(live, request) for request in requests]
    assert [live.decode(body).url for body in bodies[1:]] == [request.url for request in requests[1:]]
    with pytest.raises(LostRequestError):
        live.decode(bodies[0])
    live.close()
    assert "2 requests were kept in memory" in caplog.text


def test_bodies_of_tries_and_visits_keep_the_mark() -> None:
    """Whatever else a body holds."""
    live = live_of(keeps=True)
    request = Request(URL, meta={"handle": threading.Lock()})
    body = body_of(live, request)
    assert live.decode(with_known(body, b"visit")).meta["handle"] is request.meta["handle"]
    tried = request.replace(meta={**request.meta, "retry_times": 1})
    assert live.decode(as_next_try(body_of(live, tried, body), body)).meta == {**tried.meta, "depth": 0}


class BorrowingSpider(HoldingSpider):
    clean = shutil.rmtree


def test_method_of_another_package_is_refused_by_name() -> None:
    """Whoever writes to Redis could have it called; in `Links` it is no better."""
    spider, stats = BorrowingSpider(), get_crawler(HoldingSpider).stats
    assert stats is not None
    live = LiveRequests(spider, ValueCodec(spider, ["tests"]), stats, keeps=False)
    clean: Any = spider.clean
    with pytest.raises(RequestNotStorableError, match=r"callback is .*BIGCRAWL_STORED_PACKAGES does not list shutil"):
        body_of(live, Request(URL, clean, errback=spider.failed))
    with pytest.raises(RequestNotStorableError, match=r"errback is .*BIGCRAWL_STORED_PACKAGES does not list shutil"):
        check_methods(Links([URL], callback=spider.parse_page, errback="clean"), live)
    check_methods(Links([URL], callback=spider.parse_page, errback="failed"), live)
    tried = Request(URL, clean, meta={"added": threading.Lock()})
    assert live.decode(body_of(live, tried, plain_body(live))).callback == clean


# --- in the frontier


@pytest.fixture
def frontier(tmp_path: Path) -> Any:
    """A frontier whose node takes what it is offered; it has a URL in process."""
    frontier = new_scheduler(tmp_path)
    offered: list[Any] = []
    node: Any = SimpleNamespace(
        handout=SimpleNamespace(
            health=SimpleNamespace(is_failing=lambda *_: False),
            ends=SimpleNamespace(may_come_again=False),
            suspects=(),
            lanes=None,
        ),
        crawl=SimpleNamespace(keys=KEYS),
        outbox=SimpleNamespace(remember=lambda _key: True),
        offer=offered.append,
        offered=offered,
        link_graph=None,
        parts=SimpleNamespace(control=SimpleNamespace(discovers=True)),
    )
    frontier.attach(node, HoldingSpider())
    return frontier


def in_process(frontier: Any, request: Request) -> Any:
    held = held_url(1)
    body = body_of(frontier._live, request)
    key = request_key(request.url, "GET", b"")
    held.fields = held.fields._replace(key=key, body=body)
    frontier.started.record_start(request, held)
    return held


def test_retry_and_redirects_of_a_request_with_a_handle_are_taken(frontier: Any) -> None:
    """A page that a handler has put into meta made them vanish: no errback, and nothing counted."""
    started = Request(URL, meta={"given": 1})
    held = in_process(frontier, started)
    started.meta["playwright_page"] = page = threading.Lock()
    held.outcome = "status:503"
    retry = started.replace(meta={**started.meta, "retry_times": 1}, dont_filter=True)
    assert frontier.enqueue_request(retry)
    assert frontier._live.decode(unpack_member(held.next_try).body).meta["playwright_page"] is page
    hop = {"redirect_times": 1, "redirect_urls": [URL]}
    moved = Request("http://b.example/", meta={**started.meta, **hop}, dont_filter=True)
    assert frontier.enqueue_request(moved)
    assert frontier._live.decode(frontier.node.offered[0].body).meta["playwright_page"] is page
    stored = live_of().decode(frontier.node.offered[0].body)
    assert stored.meta == {"given": 1, "depth": 0, **hop}
    copied = Request("http://c.example/", meta=dict(started.meta))
    assert not frontier.enqueue_request(copied), "a link of the spider's"


def test_middleware_may_return_the_very_request_that_it_was_given(frontier: Any) -> None:
    """Taken, it holds what was added; refused, the engine gets a copy, because it still has this one."""
    started = Request(URL, errback=frontier._live.spider.failed, dont_filter=True)
    in_process(frontier, started)
    started.meta["playwright_page"] = page = threading.Lock()
    assert frontier.enqueue_request(started)
    again = frontier._live.decode(frontier.node.offered[0].body)
    assert again is not started
    assert again.meta["playwright_page"] is page
    started.cookies = [1]  # type: ignore[list-item]
    assert not frontier.enqueue_request(started)
    refused = frontier.next_request()
    assert refused is not started
    assert (refused.url, frontier.started.is_refused(refused)) == (URL, True)
    assert not frontier.enqueue_request(refused)
    assert not frontier.started.has_unqueued, "or its errback, which asks for it again, is called for ever"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"url": "gopher://x/"}, "gopher://x/"),
        ({"meta": {"x": threading.Lock()}}, "meta['x'] holds a lock"),
        ({"callback": nested}, "callback is <function"),
        ({"cookies": [1]}, "cookies is"),
    ],
)
def test_errback_of_what_is_refused_is_called(frontier: Any, fields: dict[str, Any], said: str) -> None:
    """The engine gets the request, and its error as the only answer, before anything else."""
    request = Request(**{"url": URL, "errback": frontier._live.spider.failed, **fields})
    assert not frontier.enqueue_request(request)
    assert frontier.has_pending_requests()
    assert frontier.next_request() is request
    error = frontier.started.refusal_of(request)
    assert isinstance(error, UrlRefusedError)
    assert said in str(error)
    assert frontier.started.is_refused(request)
    assert frontier.started.next_unqueued() is None
    assert not frontier.enqueue_request(Request(**{"url": URL, **fields}))
    assert frontier.started.next_unqueued() is None, "it has no errback"


def test_page_in_its_own_url_goes_to_the_engine(frontier: Any) -> None:
    """Once, unless dont_filter says otherwise; it may be of any size and hold anything, and no host hears of it."""
    request = Request("data:,x", meta={"handle": threading.Lock()}, cb_kwargs={"x": nested})
    assert frontier.enqueue_request(request)
    assert frontier.has_pending_requests()
    assert frontier.next_request() is request
    assert not frontier.enqueue_request(Request("data:,x"))
    assert frontier.enqueue_request(Request("DATA:,x", dont_filter=True))
    assert frontier.next_request().url == "data:,x"
    frontier.node.parts.control.discovers = False
    assert not frontier.enqueue_request(Request("data:,y"))
    assert not frontier.started.has_unqueued
    assert not frontier.node.offered


@pytest.mark.parametrize("errback", ["failed", None])
def test_batch_that_cannot_be_stored_fails_nothing_else(
    frontier: Any, errback: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Each of its URLs is counted, and the errback called; the rest of what the callback gives is taken."""
    desk = Desk(frontier)
    frontier.node.workload = SimpleNamespace(is_crowded=False)
    handle = threading.Lock()
    links = Links([URL, "b", "mailto:x"], base=URL, errback=errback, meta={"handle": handle})
    assert asyncio.run(desk.page(links, {"item": 1})) == [{"item": 1}]
    assert frontier._crawler.stats.get_value("bigcrawl/dropped/not-storable") == 2
    assert sum("meta['handle'] holds a lock" in record.getMessage() for record in caplog.records) == 1
    refused = [frontier.next_request() for _ in range(2 if errback else 0)]
    assert [request.url for request in refused] == ([URL, f"{URL}b"] if errback else [])
    assert all("holds a lock" in str(frontier.started.refusal_of(request)) for request in refused)
    assert all((request.meta["handle"], request.errback.__name__) == (handle, "failed") for request in refused)
    assert not frontier.started.has_unqueued


def test_second_type_at_the_same_key_is_named(frontier: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Each once, with the remedy; all are counted."""
    for value in (threading.Lock(), threading.Lock(), threading.Event(), threading.Event()):
        frontier.enqueue_request(Request(URL, meta={"x": value}))
    said = [record.getMessage() for record in caplog.records if "cannot be stored" in record.getMessage()]
    assert [("holds a lock" in line, "holds a Event" in line) for line in said] == [(True, False), (False, True)]
    assert all("docs/requests.md" in line for line in said)
    assert frontier._crawler.stats.get_value("bigcrawl/dropped/not-storable") == 4


def test_lost_request_gets_to_its_errback(frontier: Any) -> None:
    """It is handed out as refused, and is not fetched; a stored one that lacks nothing needed is fetched."""
    spider = frontier._live.spider
    other = live_of(keeps=True)
    request = Request(URL, errback=other.spider.failed, meta={"handle": threading.Lock()})  # type: ignore[attr-defined]
    held = held_url(1)
    held.start(0)
    held.fields = held.fields._replace(body=body_of(other, request))
    built = frontier._build_request(frontier.node, held)
    frontier.started.record_start(built, held)
    assert (built.url, built.errback) == (URL, spider.failed)
    assert "lost-from-memory" in str(frontier.started.refusal_of(built))
    assert held.stage is Stage.STARTED
    helpful = held_url(2)
    helpful.fields = helpful.fields._replace(body=body_of(other, request, plain_body(other)))
    assert frontier.started.refusal_of(frontier._build_request(frontier.node, helpful)) is None
    assert not helpful.refusal


def test_keys_of_meta_without_effect_are_warned_of_once(frontier: Any, caplog: pytest.LogCaptureFixture) -> None:
    """If a spider sets them; meta that it copied from a page has the slot of that page."""
    copied = {"download_slot": "a.example", "download_latency": 0.1}
    for meta in ({"depth": 1}, copied, {"download_slot": "mine"}, {"download_slot": "mine"}):
        frontier.enqueue_request(Request(URL, meta=dict(meta)))
    frontier.enqueue_request(Request(URL, meta={"autothrottle_dont_adjust_delay": True}))
    frontier.enqueue_request(Request(URL, meta={"priority_adjust": 1}))
    said = [record.getMessage().partition(" ")[0] for record in caplog.records if record.levelname == "WARNING"]
    assert said == ["download_slot", "autothrottle_dont_adjust_delay", "priority_adjust"]


def test_slot_that_a_fetch_has_set_is_not_warned_of(frontier: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Scrapy's own is in the meta of a retry and of a redirect; a handler that fails has measured nothing yet."""
    request = Request(URL)
    in_process(frontier, request)
    request.meta["download_slot"] = "a.example"
    redirected = {"redirect_times": 1, "redirect_urls": [URL]}
    for url, more in ((URL, {"retry_times": 1}), ("http://b.example/", redirected)):
        frontier.enqueue_request(Request(url, meta={**request.meta, **more}))
    assert not caplog.records


def test_first_request_of_each_scheme_is_in_the_log(frontier: Any, caplog: pytest.LogCaptureFixture) -> None:
    """As a warning: links may lead anywhere."""
    for url in ("file:///a", "file:///b", "ftp://a.example/"):
        frontier.enqueue_request(Request(url))
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert ["file:" in line for line in said] == [True, False]
    assert "ftp" in said[1]


def test_start_request_of_another_scheme_is_handed_out_and_an_entry_of_a_list_is_not(frontier: Any) -> None:
    """Others may write to a list. A retry goes the way of its request, and no other one of such meta."""
    for url, meta, taken in (
        ("file:///a", {}, True),
        ("file:///b", {ENTRY: "list.1"}, False),
        ("gopher://a.example/", {}, True),
    ):
        request = Request(url, meta=meta)
        frontier.intake.record_start_request(request)
        assert frontier.enqueue_request(request) is taken
        if taken:
            assert frontier.next_request().url == url
    retry = {"retry_times": 1}
    assert frontier.enqueue_request(Request("file:///a", meta=retry, dont_filter=True))
    assert not frontier.enqueue_request(Request("file:///other", meta=retry, dont_filter=True))
    assert not frontier.enqueue_request(Request("FILE:///a"))
