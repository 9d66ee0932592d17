"""What Scrapy's engine touches: no exception leaves it, and a stop is noticed whatever else hangs."""

from __future__ import annotations

import asyncio
import gc
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import DownloadFailedError, DownloadTimeoutError
from scrapy.utils.test import get_crawler

from bigcrawl.exceptions import OwnershipLostError, TransientStoreError
from bigcrawl.scheduler import scheduler as scheduler_module
from bigcrawl.scheduler.records.member import unpack_member
from bigcrawl.scheduler.scheduler import Scheduler, start_digest
from tests.support.keys import KEYS, request_key
from tests.support.logs import of_bigcrawl
from tests.support.redis_server import PrivateRedis
from tests.unit.scheduler.records.test_held_urls import held_url
from tests.unit.scheduler.world import QUIET, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.exceptions import BigcrawlError
    from bigcrawl.scheduler.records.held import HeldUrl


def new_scheduler(tmp_path: Path, **settings: Any) -> Scheduler:
    chosen = {f"BIGCRAWL_{name.upper()}": value for name, value in settings.items()}
    return Scheduler(get_crawler(Spider, {**QUIET, "BIGCRAWL_STATE_DIR": str(tmp_path), **chosen}))


def test_start_request_that_never_came_is_forgotten_with_it(tmp_path: Path) -> None:
    """A start request dropped on its way must not make a later request, at its address, a start request."""
    frontier = new_scheduler(tmp_path)
    for i in range(50):
        frontier.note_start_request(Request(f"http://a.example/{i}"))
    gc.collect()
    assert len(frontier._start_requests) == 0


def test_no_exception_leaves_what_the_engine_calls(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One that did could hang the engine for good; it is logged, and the answer is "not now"."""

    def broken() -> bool:
        raise ZeroDivisionError

    frontier = new_scheduler(tmp_path)
    handout = SimpleNamespace(buffered=1, suspects=())
    frontier.node = SimpleNamespace(handout=handout, outbox=None)  # type: ignore[assignment]
    frontier._spider = Spider(name="test")
    frontier._may_take = broken  # type: ignore[method-assign]
    assert frontier.next_request() is None
    assert frontier.enqueue_request(Request("http://a.example/")) is False
    ours = [record.levelname for record in of_bigcrawl(caplog)]
    assert ours == ["ERROR", "ERROR"]


def test_frontier_without_a_node_has_nothing_to_do(tmp_path: Path) -> None:
    """Before it is open, and when it could not be opened, the engine gets no requests and may close."""
    frontier = new_scheduler(tmp_path)
    assert frontier.next_request() is None
    assert not frontier.has_pending_requests()
    assert not frontier.enqueue_request(Request("http://a.example/"))


def test_limit_is_told_as_the_reason_by_who_knows_it(tmp_path: Path) -> None:
    """At BIGCRAWL_MAX_PAGES the engine must not close by itself: it would say "finished"."""
    frontier = new_scheduler(tmp_path, max_pages=3)
    handout = SimpleNamespace(held=[])
    frontier.node = SimpleNamespace(finished=False, has_reached_max=True, handout=handout)  # type: ignore[assignment]
    assert frontier.has_pending_requests()
    frontier.node.finished = True  # type: ignore[union-attr]
    assert not frontier.has_pending_requests()


@pytest.mark.parametrize(("name", "value"), [("min-replicas-to-write", "1"), ("maxmemory", "1")])
def test_node_waits_at_its_start_for_a_redis_that_refuses_writes(
    tmp_path: Path, crawl_name: str, name: str, value: str
) -> None:
    """Too few replicas, or no memory: neither ends the node; it joins when the server takes writes again."""

    async def scenario(server: PrivateRedis) -> None:
        async with world(tmp_path, crawl_name, server.url) as w:
            frontier = new_scheduler(tmp_path, crawl=crawl_name, redis_url=server.url)
            frontier._crawler.crawling = True
            frontier._new_node = lambda client: w.new_node()  # type: ignore[method-assign]

            async def mend() -> None:
                server.client.config_set(name, "0")

            frontier._rest_before_start = mend  # type: ignore[method-assign]
            server.client.config_set(name, value)
            node = await frontier._join(server.url)
            assert len(node.ownership.owned) == 4
            assert "start" in frontier._said
            await node.close()
            assert frontier._client is not None
            await frontier._client.close()

    with PrivateRedis() as server:
        asyncio.run(scenario(server))


@pytest.mark.parametrize("error", [OwnershipLostError("taken over"), TransientStoreError("the disk is full")])
def test_node_begins_its_start_again_after_what_waiting_mends(
    tmp_path: Path, crawl_name: str, redis_url: str, error: BigcrawlError
) -> None:
    """Another node took over what it had claimed, or its disk was full: the next try joins the crawl."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            frontier = new_scheduler(tmp_path, crawl=crawl_name, redis_url=redis_url)
            frontier._crawler.crawling = True
            unlucky, lucky = w.new_node(), w.new_node()
            nodes = iter((unlucky, lucky))

            async def fail() -> None:
                raise error

            async def at_once() -> None:
                pass

            unlucky.start = fail  # type: ignore[method-assign]
            frontier._rest_before_start = at_once  # type: ignore[method-assign]
            frontier._new_node = lambda client: next(nodes)  # type: ignore[method-assign]
            assert await frontier._join(redis_url) is lucky
            await lucky.close()
            assert frontier._client is not None
            await frontier._client.close()

    asyncio.run(scenario())


def test_stop_is_noticed_while_the_pump_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow fetches are given up after the grace although no loop of the node turns: Redis hangs."""
    monkeypatch.setattr(scheduler_module, "LOOK_OUT_S", 0.001)

    async def scenario() -> None:
        frontier = new_scheduler(tmp_path, stop_grace=0)
        returned: list[str] = []
        aborted = asyncio.Event()
        handout = SimpleNamespace(return_unstarted=lambda: returned.append("unstarted"))
        frontier.node = SimpleNamespace(stop=lambda: returned.append("stopped"), handout=handout)  # type: ignore[assignment]
        downloader = SimpleNamespace(abort=aborted.set)
        slot = SimpleNamespace(closing=None, inprogress=set())
        engine = SimpleNamespace(_slot=slot, downloader=downloader, running=True)
        monkeypatch.setattr(frontier._crawler, "_engine", engine)
        frontier._look_out()
        assert not returned
        slot.closing = object()
        await asyncio.wait_for(aborted.wait(), 60)
        assert returned == ["stopped", "unstarted"]
        frontier._closed = True

    asyncio.run(scenario())


def test_time_to_close_is_what_the_stop_has_left(tmp_path: Path) -> None:
    """A crawl that ends by itself closes in its own time; a stopped one within ten seconds of the signal."""

    async def scenario() -> None:
        frontier = new_scheduler(tmp_path, stop_grace=4)
        assert frontier._left_to_close_ms() == 9_000
        now = asyncio.get_running_loop().time()
        frontier._abort_at = now + 4
        assert frontier._left_to_close_ms() == pytest.approx(9_000, abs=100)
        frontier._abort_at = now - 2
        assert frontier._left_to_close_ms() == pytest.approx(3_000, abs=100)
        frontier._abort_at = now - 60
        assert frontier._left_to_close_ms() == 500

    asyncio.run(scenario())


def test_digest_tells_start_requests_apart_by_spider_and_arguments() -> None:
    """The same spider with the same arguments starts once; others start too."""
    spiders = [Spider("a"), Spider("b"), Spider("a", seeds="x"), Spider("a", seeds="y")]
    assert len({start_digest(spider) for spider in spiders}) == 4
    assert start_digest(Spider("a", seeds="x")) == start_digest(Spider("a", seeds="x"))


@pytest.mark.parametrize(("outcome", "goes_behind"), [("status:301", False), ("status:500", True)])
def test_redirect_to_itself_is_no_retry(tmp_path: Path, outcome: str, *, goes_behind: bool) -> None:
    """Scrapy carries a URL's retries along with its redirects; only a failed try goes behind the others."""
    frontier = new_scheduler(tmp_path)
    frontier.node = SimpleNamespace(handout=None, keys=KEYS)  # type: ignore[assignment]
    frontier._spider = Spider(name="test")
    before = {"retry_times": 1} if not goes_behind else {}
    started = Request("http://a.example/", meta=before)
    held = held_url(1)
    held.fields = held.fields._replace(key=request_key("http://a.example/", "GET", b""))
    held.outcome = outcome
    frontier._started[started] = held
    hop = {"redirect_times": 1, "redirect_urls": ["http://a.example/"]}
    after = {"retry_times": 1} | ({} if goes_behind else hop)
    assert frontier.enqueue_request(Request("http://a.example/", meta=after, dont_filter=True))
    assert (held.next_order is not None) is goes_behind
    assert unpack_member(held.next_try).attempts == held.fields.attempts + goes_behind


@pytest.mark.parametrize(
    ("error", "has_begun", "noted"), [("timeout", True, 1), ("timeout", False, 0), ("lost", True, 0)]
)
def test_time_that_ran_out_tells_of_a_crowd_where_an_answer_had_begun(
    tmp_path: Path, error: str, *, has_begun: bool, noted: int
) -> None:
    """A server that never said a word may be dead, and a lost connection has no time: neither counts, all are over."""
    frontier = new_scheduler(tmp_path)
    times: list[tuple[str, int]] = []
    over: list[HeldUrl] = []
    crowd = SimpleNamespace(note=lambda host, took_ms: times.append((host, took_ms)))
    handout = SimpleNamespace(crowd=crowd, note_answered=over.append, has_lease=True)
    frontier.node = SimpleNamespace(handout=handout)  # type: ignore[assignment]
    request = Request("http://a.example/", meta={"download_latency": 0.1} if has_begun else {})
    held = frontier._started[request] = held_url(1)
    failure = DownloadTimeoutError("3 s") if error == "timeout" else DownloadFailedError("reset")
    frontier.note_failure(request, failure, 3_000)
    assert times == [(held.host, 3_000)] * noted
    assert over == [held]
