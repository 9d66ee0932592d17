"""The downloader: its deadline, its abort, and which requests it takes past Scrapy's slots."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager, nullcontext
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import pytest
from scrapy import Request, Spider, signals
from scrapy.exceptions import DownloadTimeoutError, IgnoreRequest
from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future

from bigcrawl.clock import SystemClock
from bigcrawl.downloads.downloader import Downloader
from bigcrawl.scheduler.adapter.fetch_errors import UNDER_LEASE, FetchAbortedError, UrlRefusedError
from bigcrawl.scheduler.records.held import Stage
from bigcrawl.scheduler.scheduler import Scheduler
from tests.support.observing import NO_OBSERVERS
from tests.support.running.stepped_time import run_stepped
from tests.unit.downloads.crawlers import new_crawler
from tests.unit.downloads.servers import ok, sends, serving
from tests.unit.scheduler.handout.desk import Desk
from tests.unit.scheduler.records.test_held_urls import held_url
from tests.unit.scheduler.world import QUIET

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from scrapy.crawler import Crawler

    from bigcrawl.scheduler.records.held import HeldUrl
    from tests.unit.downloads.servers import Answer

HANDLER = "bigcrawl.downloads.http.HttpDownloadHandler"
FOR_EVER_MS = 1 << 60
STARTED = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegun"


class Crawl:
    """A downloader whose frontier hands out what the test says; no engine."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.frontier = Scheduler.from_crawler(crawler)
        self.downloader = Downloader(crawler)

    def hand_out(self, url: str, **request: Any) -> tuple[Request, HeldUrl]:
        made, held = Request(url, **request), held_url(1)
        self.frontier.started.record_start(made, held)
        return made, held

    def transfers_running(self) -> int:
        """How many libcurl has begun."""
        handler = self.downloader.handlers._handlers._handlers.get("http")
        transfers = handler._transfers if handler is not None else None
        return transfers.running_count if transfers is not None else 0

    async def fetch(self, request: Request) -> Response | Request:
        async with asyncio.timeout(60):
            return await maybe_deferred_to_future(self.downloader.fetch(request))


@asynccontextmanager
async def crawling(tmp_path: Path, **settings: Any) -> AsyncIterator[Crawl]:
    settings = {"DOWNLOAD_HANDLERS": {"http": HANDLER, "https": None, "ftp": None}, **settings}
    crawler = new_crawler(**QUIET, BIGCRAWL_STATE_DIR=str(tmp_path), TELNETCONSOLE_ENABLED=False, **settings)
    crawl = Crawl(crawler)
    try:
        yield crawl
    finally:
        crawl.downloader.close()
        await crawl.downloader.handlers._close()


async def drip(path: str, writer: asyncio.StreamWriter) -> None:
    """A server that is never done and never silent."""
    writer.write(STARTED)
    while True:
        await asyncio.sleep(0.02)
        writer.write(b".")


def test_fetch_ends_by_its_deadline_whatever_the_server_sends(tmp_path: Path) -> None:
    """BIGCRAWL_FETCH_DEADLINE holds against a server that sends a byte now and then; the frontier hears of it."""

    async def scenario() -> None:
        async with (
            serving(drip) as server,
            crawling(tmp_path, BIGCRAWL_FETCH_DEADLINE=1, RETRY_ENABLED=False) as crawl,
        ):
            crawl.downloader.handlers._deadline_s = 0.2  # the setting's least is a second
            request, held = crawl.hand_out(server.url())
            with pytest.raises(DownloadTimeoutError, match="BIGCRAWL_FETCH_DEADLINE"):
                await crawl.fetch(request)
            await server.until(lambda: server.open == 0)
            assert held.outcome == "error:timeout"
            assert held.download_ms >= 190
            assert not crawl.downloader.active

    asyncio.run(scenario())


def test_each_fetch_has_its_own_deadline(tmp_path: Path) -> None:
    """The one timer of all fetches goes on to the next deadline, also from a fetch that was answered."""

    async def answer(path: str, writer: asyncio.StreamWriter) -> None:
        await (sends(ok()) if path == "/soon" else drip)(path, writer)

    async def scenario() -> None:
        async with serving(answer) as server, crawling(tmp_path, RETRY_ENABLED=False) as crawl:
            handlers = crawl.downloader.handlers
            handlers._deadline_s = 0.2

            async def fetch(path: str, after_s: float) -> int:
                await asyncio.sleep(after_s)
                request, held = crawl.hand_out(server.url(path))
                with pytest.raises(DownloadTimeoutError) if path == "/drip" else nullcontext():
                    await crawl.fetch(request)
                return held.download_ms

            took_ms = await asyncio.gather(fetch("/soon", 0), fetch("/drip", 0.05), fetch("/drip", 0.15))
            assert min(took_ms[1:]) >= 190
            assert handlers._next_deadline is None

    asyncio.run(scenario())


def test_timeout_of_the_request_is_not_taken_for_the_deadline(tmp_path: Path) -> None:
    """The shorter of the two ends a fetch, under its own name."""

    async def scenario() -> None:
        settings = {"BIGCRAWL_FETCH_DEADLINE": 60, "BIGCRAWL_TRUNCATE": False, "RETRY_ENABLED": False}
        async with serving(drip) as server, crawling(tmp_path, **settings) as crawl:
            request, _ = crawl.hand_out(server.url(), meta={"download_timeout": 0.1})
            with pytest.raises(DownloadTimeoutError, match=r"timed out after \d") as caught:
                await crawl.fetch(request)
            assert "BIGCRAWL_FETCH_DEADLINE" not in str(caught.value)

    asyncio.run(scenario())


@pytest.mark.parametrize(("earlier", "counted"), [(2, None), (3, 1)])
def test_one_redirect_too_many_is_counted(tmp_path: Path, earlier: int, counted: int | None) -> None:
    """REDIRECT_MAX_TIMES: Scrapy's middleware drops it, and the URL ends as what it was answered with."""
    moved = sends(b"HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n")

    async def scenario() -> None:
        async with serving(moved) as server, crawling(tmp_path, REDIRECT_MAX_TIMES=3) as crawl:
            request, held = crawl.hand_out(server.url(), meta={"redirect_times": earlier})
            if counted:
                with pytest.raises(IgnoreRequest):
                    await crawl.fetch(request)
            else:
                assert isinstance(await crawl.fetch(request), Request)
            assert held.outcome == "status:302"
            crawl.downloader._unread._stats_buffer.flush()
            assert crawl.crawler.stats is not None
            assert crawl.crawler.stats.get_value("bigcrawl/limits/redirects") == counted

    asyncio.run(scenario())


@pytest.mark.parametrize("answer", [sends(STARTED), drip], ids=["stalls", "drips"])
def test_abort_gives_up_all_that_runs_and_refuses_the_rest(tmp_path: Path, answer: Answer) -> None:
    """Connections are broken off; no URL of them counts as failed, and nothing new is begun."""

    async def scenario() -> None:
        async with serving(answer) as server, crawling(tmp_path) as crawl:
            handed = [crawl.hand_out(server.url(f"/{n}")) for n in range(3)]
            work = [asyncio.ensure_future(crawl.fetch(request)) for request, _ in handed]
            await server.until(lambda: len(server.paths) == 3)
            assert crawl.downloader.abort_all() == 3
            results = await asyncio.gather(*work, return_exceptions=True)
            assert [type(result) for result in results] == [FetchAbortedError] * 3
            assert isinstance(results[0], IgnoreRequest), "Scrapy is quiet about those"
            assert [held.outcome for _, held in handed] == ["aborted"] * 3
            await server.until(lambda: server.open == 0)
            late, held = crawl.hand_out(server.url("/late"))
            with pytest.raises(FetchAbortedError):
                await crawl.fetch(late)
            assert (held.outcome, crawl.downloader.abort_all(), "/late" in server.paths) == ("aborted", 0, False)

    asyncio.run(scenario())


def test_break_off_gives_up_what_the_lease_covers_and_goes_on(tmp_path: Path) -> None:
    """Pages and robots.txt, not what the project fetches for itself; later ones are fetched as ever."""

    async def answer(path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(ok() if path == "/late" else STARTED)

    async def scenario() -> None:
        async with serving(answer) as server, crawling(tmp_path) as crawl:
            page, held = crawl.hand_out(server.url("/page"))
            robots = Request(server.url("/robots.txt"), meta={UNDER_LEASE: ()})
            own = Request(server.url("/image"))
            work = [asyncio.ensure_future(crawl.downloader._transfer(request)) for request in (page, robots, own)]
            await server.until(lambda: len(server.paths) == 3)
            assert crawl.downloader.break_off() == 2
            results = await asyncio.gather(*work[:2], return_exceptions=True)
            assert [type(result) for result in results] == [FetchAbortedError] * 2
            assert held.outcome == "aborted"
            assert not work[2].done()
            await crawl.fetch(crawl.hand_out(server.url("/late"))[0])
            work[2].cancel()
            await asyncio.gather(work[2], return_exceptions=True)

    asyncio.run(scenario())


class Holdup:
    """A downloader middleware that needs 130 ms for one page."""

    async def process_request(self, request: Request) -> None:
        if request.url.endswith("/held-up"):
            await asyncio.sleep(0.13)


class NotingHandler:
    """A download handler whose answers come at once, and which notes when."""

    lazy = False
    times_ms: ClassVar[list[int]] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls()

    async def download_request(self, request: Request) -> Response:
        self.times_ms.append(round(asyncio.get_running_loop().time() * 1000))
        return Response(request.url)

    async def close(self) -> None:
        pass


def test_gap_of_a_server_begins_when_the_fetch_before_was_sent(tmp_path: Path) -> None:
    """A middleware, or a busy loop, may hold up one fetch that was to start, and not the next; a robots.txt as well."""
    desk = Desk(tmp_path)
    NotingHandler.times_ms.clear()
    gaps = (("192.0.2.1", 500),)

    async def scenario() -> None:
        noting = {"DOWNLOADER_MIDDLEWARES": {Holdup: 1}, "DOWNLOAD_HANDLERS": {"http": NotingHandler, "https": None}}
        async with crawling(tmp_path, **noting) as crawl:
            crawl.frontier.attach(
                cast("Any", SimpleNamespace(handout=desk.handout, observers=NO_OBSERVERS)),
                Spider("test"),
            )
            works = []
            for name in ("held-up", "robots.txt", "page", "page of another server"):
                request = Request(f"http://a.example/{name}", meta={UNDER_LEASE: gaps})
                if name != "robots.txt":
                    request, held = crawl.hand_out(f"http://a.example/{name}")
                    held.gaps = gaps if name != "page of another server" else ()
                assert desk.handout.start_gaps.try_start_until(gaps, FOR_EVER_MS) == 0
                works.append(
                    asyncio.ensure_future(crawl.downloader.fetch(request).asFuture(asyncio.get_running_loop()))
                )
                await asyncio.sleep(0.5)
            await asyncio.gather(*works)

    run_stepped(desk.clock, scenario())
    *of_server, other = NotingHandler.times_ms
    assert of_server == [130, 630, 1_130]
    assert other < 1_630, "it waits for nothing"


def test_connections_of_a_host_are_a_delay_apart_where_they_are_sent(tmp_path: Path) -> None:
    """One that was held up waits for its turn among those sent meanwhile, a robots.txt too; a refused one has none."""
    desk = Desk(tmp_path, host_delay=0.1, host_connections=4)
    NotingHandler.times_ms.clear()

    async def scenario() -> None:
        noting = {"DOWNLOADER_MIDDLEWARES": {Holdup: 1}, "DOWNLOAD_HANDLERS": {"http": NotingHandler, "https": None}}
        async with crawling(tmp_path, **noting) as crawl:
            crawl.frontier.attach(
                cast("Any", SimpleNamespace(handout=desk.handout, observers=NO_OBSERVERS)), Spider("test")
            )
            works = []
            for name in ("held-up", "page", "refused", "robots.txt", "last"):
                request = Request(f"http://a.example/{name}", meta={UNDER_LEASE: ()})
                if name != "robots.txt":
                    request, held = crawl.hand_out(f"http://a.example/{name}")
                    held.refusal = "forbidden" if name == "refused" else ""
                work = crawl.downloader.fetch(request).asFuture(asyncio.get_running_loop())
                works.append(asyncio.ensure_future(work))
                await asyncio.sleep(0.1)
            await asyncio.gather(*works, return_exceptions=True)

    run_stepped(desk.clock, scenario())
    first, *_, last = NotingHandler.times_ms
    assert first == 100, "the page, and nothing before the one that was held up"
    assert all(100 <= later - earlier <= 101 for earlier, later in pairwise(NotingHandler.times_ms))
    assert last <= 403


def test_refused_fetch_costs_its_server_no_gap(tmp_path: Path) -> None:
    """It had a start, missed it, and was refused when it asked for another: nothing is sent."""
    desk = Desk(tmp_path)

    async def scenario() -> None:
        async with crawling(tmp_path) as crawl:
            crawl.frontier.attach(
                cast("Any", SimpleNamespace(handout=desk.handout, observers=NO_OBSERVERS)), Spider("test")
            )
            for refusal in ("forbidden", ""):
                request, held = crawl.hand_out(f"http://a.example/{refusal}")
                held.gaps, held.refusal = (("192.0.2.1", 500),), refusal
                assert crawl.frontier.started.try_send(request) == 0

    asyncio.run(scenario())


def test_fetch_makes_no_context_manager_of_a_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs two microseconds, and every page pays them."""
    made = []
    kind: Any = type(contextmanager(lambda: iter(()))())
    make = kind.__init__

    def note(self: Any, *arguments: Any) -> None:
        made.append(self)
        make(self, *arguments)

    handler = {"DOWNLOAD_HANDLERS": {"http": NotingHandler, "https": None}}

    async def scenario() -> None:
        async with crawling(tmp_path, **handler) as crawl:
            request, _ = crawl.hand_out("http://a.example/")
            with monkeypatch.context() as patch:
                patch.setattr(kind, "__init__", note)
                await crawl.downloader.handlers.download_request_async(request)

    asyncio.run(scenario())
    assert not made


def test_fetch_is_over_when_its_answer_had_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the microsecond, for the rest of its host. An answer of any other handler is over when it is reported."""
    ended_us: list[int] = []

    async def scenario() -> None:
        clock = SystemClock()
        async with serving(sends(ok())) as server, crawling(tmp_path) as crawl:
            desk = Desk(tmp_path)
            node: Any = SimpleNamespace(handout=desk.handout, observers=NO_OBSERVERS)
            crawl.frontier.attach(node, Spider("test"))
            monkeypatch.setattr(desk.handout.fetches, "record_answered", lambda _, ended: ended_us.append(ended))
            request, _ = crawl.hand_out(server.url())
            began_us = clock.monotonic_us()
            response = await crawl.fetch(request)
            assert began_us < ended_us[0] < clock.monotonic_us()
            assert isinstance(response, Response)
            crawl.frontier.started.record_response(request, response, 0)
            assert ended_us[-1] == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("late_us", [400, 20_700])
def test_request_is_not_sent_before_it_is_due(tmp_path: Path, late_us: int) -> None:
    """To the microsecond, however the loop rounds its timers. The time it waits is none that the server took."""

    async def scenario() -> None:
        clock = SystemClock()
        sent_us = []

        async def answer(path: str, writer: asyncio.StreamWriter) -> None:
            sent_us.append(clock.monotonic_us())
            await sends(ok())(path, writer)

        async with serving(answer) as server, crawling(tmp_path) as crawl:
            handout = Desk(tmp_path).handout
            crawl.frontier.attach(cast("Any", SimpleNamespace(handout=handout, observers=NO_OBSERVERS)), Spider("test"))
            await crawl.fetch(crawl.hand_out(server.url("/first"))[0])  # what is loaded for it takes longer
            request, held = crawl.hand_out(server.url("/"))
            due_us = clock.monotonic_us() + late_us
            held.await_turn(due_us)
            await crawl.fetch(request)
            assert sent_us[1] >= due_us
            assert 1_000 * held.download_ms <= clock.monotonic_us() - due_us + 1_000

    asyncio.run(scenario())


@pytest.mark.parametrize("kept", [False, True], ids=["new connection", "kept connection"])
@pytest.mark.parametrize("end", ["lease", "partition"])
def test_request_is_not_sent_after_the_lease(tmp_path: Path, kept: bool, end: str) -> None:
    """It had begun, its connection is there, but the node slept meanwhile: not a byte goes out, and nothing failed."""

    async def scenario() -> None:
        async with serving(sends(ok())) as server, crawling(tmp_path) as crawl:
            handout = Desk(tmp_path).handout
            crawl.frontier.attach(cast("Any", SimpleNamespace(handout=handout, observers=NO_OBSERVERS)), Spider("test"))
            if kept:
                await crawl.fetch(crawl.hand_out(server.url("/first"))[0])
            request, held = crawl.hand_out(server.url("/late"))
            work = asyncio.ensure_future(crawl.fetch(request))
            while not crawl.transfers_running():  # noqa: ASYNC110 - every turn of the loop counts
                await asyncio.sleep(0)
            if end == "lease":
                handout.lease.ends_ms = 0
            else:
                held.stage = Stage.ENDED
            with pytest.raises(FetchAbortedError, match="this node's lease has expired"):
                await work
            assert held.outcome == "aborted"
            with pytest.raises(FetchAbortedError, match="or has no lease"):
                await crawl.fetch(request)
            handout.lease.ends_ms, held.stage = FOR_EVER_MS, Stage.STARTED
            await crawl.fetch(request)
            assert server.paths == (["/first"] if kept else []) + ["/late"]

    asyncio.run(scenario())


@pytest.mark.parametrize("slept", [False, True])
def test_answer_that_was_slept_through_says_nothing_of_the_host(tmp_path: Path, slept: bool) -> None:
    """Its host would rest ten times a minute of which it took none; without a sleep the time counts."""

    async def scenario() -> None:
        async with serving(answers_after(0.2)) as server, crawling(tmp_path) as crawl:
            handout = Desk(tmp_path).handout
            crawl.frontier.attach(cast("Any", SimpleNamespace(handout=handout, observers=NO_OBSERVERS)), Spider("test"))
            request, held = crawl.hand_out(server.url("/"))
            work = asyncio.ensure_future(crawl.fetch(request))
            await server.until(lambda: bool(server.paths))
            handout.lease.ends_ms = 0 if slept else FOR_EVER_MS
            await work
            assert held.outcome == "status:200"
            assert (held.download_ms >= 150) is not slept
            assert slept is (held.download_ms == 0)

    asyncio.run(scenario())


def answers_after(seconds: float) -> Any:
    async def answer(path: str, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        writer.write(ok())

    return answer


def test_cancelled_fetch_is_no_abort(tmp_path: Path) -> None:
    """Who cancels without `abort` gets its cancellation."""

    async def scenario() -> None:
        async with serving(sends(STARTED)) as server, crawling(tmp_path) as crawl:
            request, held = crawl.hand_out(server.url())
            work = asyncio.ensure_future(crawl.downloader._transfer(request))
            await server.until(lambda: bool(server.paths))
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work
            assert held.outcome == "aborted"
            assert not crawl.downloader.handlers._running

    asyncio.run(scenario())


def test_refused_url_is_not_fetched_and_its_errback_hears(tmp_path: Path) -> None:
    """The refusal goes the way of a download's error, with its reason."""

    async def scenario() -> None:
        async with serving(sends(ok())) as server, crawling(tmp_path) as crawl:
            request, held = crawl.hand_out(server.url())
            held.refusal = "robots"
            with pytest.raises(UrlRefusedError, match="robots"):
                await crawl.fetch(request)
            assert (server.paths, held.outcome) == ([], "dropped:robots")

    asyncio.run(scenario())


def test_answer_is_told_to_the_frontier(tmp_path: Path) -> None:
    """Status, bytes and time, before any middleware changes the response."""

    async def scenario() -> None:
        async with serving(sends(ok(b"x" * 70))) as server, crawling(tmp_path) as crawl:
            request, held = crawl.hand_out(server.url())
            response = await crawl.fetch(request)
            assert isinstance(response, Response)
            assert (held.outcome, held.fetched_bytes, len(response.body)) == ("status:200", 70, 70)

    asyncio.run(scenario())


@pytest.mark.parametrize("errback", [None, print], ids=["quiet", "errback"])
def test_kept_connection_that_is_lost_costs_no_second_request_in_the_same_turn(tmp_path: Path, errback: Any) -> None:
    """The server may have had the request: it goes back to its host's queue, and its next try on a new connection.

    One with an errback, and one that the frontier knows nothing of, is sent again at once, as any client does.
    """
    answers = iter([ok(), b"", ok()])

    async def answer(path: str, writer: asyncio.StreamWriter) -> None:
        part = next(answers)
        writer.write(part)
        if not part:
            writer.close()

    async def scenario() -> None:
        async with serving(answer) as server, crawling(tmp_path) as crawl:
            await crawl.fetch(crawl.hand_out(server.url("/first"))[0])
            request, held = crawl.hand_out(server.url("/lost"), errback=errback)
            if errback is None:
                with pytest.raises(FetchAbortedError, match="connection was lost"):
                    await crawl.fetch(request)
                assert (server.paths, held.outcome) == (["/first", "/lost"], "aborted")
                request, held = crawl.hand_out(server.url("/lost"))
            await crawl.fetch(request)
            assert (server.paths, held.outcome) == (["/first", "/lost", "/lost"], "status:200")

    asyncio.run(scenario())


@pytest.mark.parametrize("is_robots", [False, True], ids=["page", "robots"])
def test_first_odd_answer_of_a_server_costs_its_host_no_failure(tmp_path: Path, is_robots: bool) -> None:
    """The URL comes back at its host's next turn, and is then read: the server has answered."""

    async def scenario() -> None:
        odd = sends(b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\npage", closes=True)
        async with serving(odd) as server, crawling(tmp_path) as crawl:
            for outcome in ("aborted", "status:200"):
                request, held = crawl.hand_out(server.url("/page"))
                if is_robots:
                    request = Request(server.url("/robots.txt"), meta={UNDER_LEASE: ()})
                if outcome == "aborted":
                    with pytest.raises(FetchAbortedError, match="next start time"):
                        await crawl.fetch(request)
                else:
                    response = await crawl.fetch(request)
                    assert isinstance(response, Response)
                    assert response.body == b"page"
                assert is_robots or held.outcome == outcome

    asyncio.run(scenario())


def test_handed_out_request_waits_for_no_slot(tmp_path: Path) -> None:
    """Its host's turn was the frontier's to give: three run at a time where Scrapy's slot has room for one."""
    together = asyncio.Barrier(3)

    async def answer(path: str, writer: asyncio.StreamWriter) -> None:
        await together.wait()
        writer.write(ok())

    async def scenario() -> None:
        settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, "DOWNLOAD_DELAY": 60}
        async with serving(answer) as server, crawling(tmp_path, **settings) as crawl:
            requests = [crawl.hand_out(server.url(f"/{n}"))[0] for n in range(3)]
            async with asyncio.timeout(60):
                await asyncio.gather(*(crawl.fetch(request) for request in requests))
            assert crawl.downloader.slots == {}
            assert [request.meta["download_slot"] for request in requests] == ["127.0.0.1"] * 3

    asyncio.run(scenario())


def test_other_requests_go_through_scrapys_slots(tmp_path: Path) -> None:
    """What a callback or a media pipeline asks for waits while its slot is full, and a handed-out one beside it not."""
    may_answer = asyncio.Event()

    async def answer(path: str, writer: asyncio.StreamWriter) -> None:
        if path == "/first":
            await may_answer.wait()
        writer.write(ok())

    async def scenario() -> None:
        async with serving(answer) as server, crawling(tmp_path, CONCURRENT_REQUESTS_PER_DOMAIN=1) as crawl:
            first, second = Request(server.url("/first")), Request(server.url("/second"))
            work = [asyncio.ensure_future(crawl.fetch(first))]
            await server.until(lambda: server.paths == ["/first"])
            work.append(asyncio.ensure_future(crawl.fetch(second)))
            await crawl.fetch(crawl.hand_out(server.url("/handed-out"))[0])
            assert crawl.downloader.active == {first, second}
            [slot] = crawl.downloader.slots.values()
            assert (slot.transferring, [request for request, _ in slot.queue]) == ({first}, [second])
            may_answer.set()
            await asyncio.gather(*work)
            assert server.paths == ["/first", "/handed-out", "/second"]

    asyncio.run(scenario())


def test_signals_of_a_download_come_as_in_scrapy(tmp_path: Path) -> None:
    """Both ways to download send the same ones, in the same order."""

    async def scenario() -> None:
        async with serving(sends(ok())) as server, crawling(tmp_path) as crawl:
            heard: list[str] = []
            names = ("request_reached_downloader", "response_downloaded", "request_left_downloader")
            for name in names:
                connect = crawl.crawler.signals.connect
                connect(lambda name=name, **_: heard.append(name), getattr(signals, name), weak=False)
            await crawl.fetch(crawl.hand_out(server.url("/ours"))[0])
            assert heard == list(names)
            await crawl.fetch(Request(server.url("/scrapys")))
            assert heard == [*names, *names]

    asyncio.run(scenario())
