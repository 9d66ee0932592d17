"""Scrapy's downloader with two promises added and most of its cost removed. Scrapy's setting `DOWNLOADER` installs it.

A fetch ends after BIGCRAWL_FETCH_DEADLINE whatever the server does, because that is how long a host rests if a node is
lost during a fetch. A fetch can also be aborted, because SIGTERM must not wait for a slow server.

A request from the frontier already has its host's turn, so it bypasses Scrapy's slots and queues. It is fetched in one
task, through the middlewares (middleware.py) to the project's download handlers. All other requests (media pipelines, a
callback's `engine.download_async`, robots.txt) take Scrapy's own path with its slots.
"""

from __future__ import annotations

import asyncio
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from scrapy import signals
from scrapy.core.downloader import Downloader as ScrapyDownloader
from scrapy.exceptions import DownloadTimeoutError, IgnoreRequest
from scrapy.http import Response
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from bigcrawl.config import read_config
from bigcrawl.downloads.middleware import MiddlewareChain
from bigcrawl.downloads.own_errors import OwnErrors
from bigcrawl.downloads.signalling import SignalSender
from bigcrawl.downloads.unread import unread_of
from bigcrawl.scheduler.adapter.early_server import begin_server, end_server
from bigcrawl.scheduler.adapter.fetch_errors import FetchAbortedError
from bigcrawl.scheduler.adapter.registry import frontier_of, record_proxy

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

    from bigcrawl.scheduler.adapter.frontier import Frontier


_TICK_S: Final = 0.001  # an event loop rounds its timers to milliseconds


class Downloader(ScrapyDownloader):
    def __init__(self, crawler: Crawler) -> None:
        begin_server(crawler)  # this is the first component of an engine
        try:
            super().__init__(crawler)
        except BaseException:
            end_server(crawler)
            raise
        self._delay = 0.0  # of slots that have none in DOWNLOAD_SLOTS: the frontier keeps DOWNLOAD_DELAY
        self._crawler = crawler
        self._signalling = SignalSender(crawler)
        self._chain = MiddlewareChain(self.middleware)
        self._unread = unread_of(crawler)
        self._redirects_max = crawler.settings.getint("REDIRECT_MAX_TIMES")
        self._frontier: Frontier | None = None
        self.handlers: Any = LimitedHandlers(crawler, self.handlers)

    def close(self) -> None:
        end_server(self._crawler)
        super().close()

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Response | Request]:
        """Download through the middlewares; fires with a response, or with a request that replaces it."""
        self._frontier = self._frontier or frontier_of(self._crawler)
        if self._frontier is None:
            return super().fetch(request)
        started = self._frontier.started
        if not (started.is_handed_out(request) or started.is_refused(request)):
            return super().fetch(request)
        self.active.add(request)  # now, not when the task starts: the engine may start more before that
        task = asyncio.get_running_loop().create_task(self._fetch_now(self._frontier, request))
        # `Deferred.fromFuture` takes 3 us more.
        answered: Deferred[Response | Request] = Deferred(lambda _: task.cancel())  # type: ignore[arg-type]
        task.add_done_callback(partial(self._end_fetch, request, answered))
        return answered

    def _end_fetch(
        self, request: Request, answered: Deferred[Response | Request], task: asyncio.Task[Response | Request]
    ) -> None:
        self.active.discard(request)
        try:
            result: Response | Request | Failure = task.result()
        except BaseException:  # noqa: BLE001 - the engine decides
            result = Failure()  # type: ignore[no-untyped-call]
        if not answered.called:  # unless cancelled
            answered.callback(result)

    def abort_all(self) -> int:
        return self.handlers.abort_all()  # type: ignore[no-any-return]

    def break_off(self) -> int:
        """Abort the frontier's running fetches, but permit new ones; return how many were aborted."""
        return self.handlers.break_off()  # type: ignore[no-any-return]

    async def _fetch_now(self, frontier: Frontier, request: Request) -> Response | Request:
        refusal = frontier.started.refusal_of(request)
        try:
            if isinstance(refusal, IgnoreRequest):
                frontier.started.record_failure(request, refusal, 0)
                result = await self._chain.process_error(refusal, request)
            else:
                result = await self._chain.run(self._transfer, request)
        except IgnoreRequest:
            # Scrapy refuses a redirect beyond the limit without counting it.
            if request.meta.get("redirect_times", 0) >= self._redirects_max and frontier.started.was_answered(request):
                self._unread.record_unread(request, "redirects")
            raise
        if isinstance(result, Response):
            frontier.started.record_received(request, result)
        return result

    async def _transfer(self, request: Request) -> Response:
        request.meta[self.DOWNLOAD_SLOT] = self.get_slot_key(request)
        send, spider = self._signalling.send, self._crawler.spider
        send(signals.request_reached_downloader, request=request, spider=spider)
        try:
            response: Response = await self.handlers.download_request_async(request)
            send(signals.response_downloaded, response=response, request=request, spider=spider)
            return response
        finally:
            send(signals.request_left_downloader, request=request, spider=spider)


class LimitedHandlers:
    def __init__(self, crawler: Crawler, handlers: Any) -> None:
        self._crawler = crawler
        self._handlers = handlers
        self._deadline_s = read_config(crawler.settings).politeness.fetch_deadline_ms / 1000
        self._running: dict[asyncio.Task[Any], Request] = {}
        self._deadlines: dict[asyncio.Task[Any], float] = {}  # each later than the one before
        self._next_deadline: asyncio.TimerHandle | None = None  # a timer for each fetch would cost 2 us
        self._given_up: dict[asyncio.Task[Any], Exception] = {}
        self._aborted = False
        self._own_errors = OwnErrors(crawler)

    async def download_request_async(self, request: Request) -> Response:
        if "proxy" in request.meta:
            _record_proxy(request.meta["proxy"])
        frontier = frontier_of(self._crawler)
        if frontier is None:
            return await self._handlers.download_request_async(request)  # type: ignore[no-any-return]
        started = monotonic()
        task = asyncio.current_task()
        assert task is not None
        self._running[task] = request
        try:
            try:
                while wait_us := frontier.started.try_send(request):  # noqa: ASYNC110 - what was sent meanwhile counts
                    await asyncio.sleep(wait_us / 1_000_000)
                started = monotonic()
                self._require_sendable(frontier, request)
                self._set_deadline(task, started + self._deadline_s)
                response: Response = await self._handlers.download_request_async(request)
            except asyncio.CancelledError as error:
                if task not in self._given_up:
                    raise
                task.uncancel()
                raise self._given_up[task] from error
            finally:
                del self._running[task]
                self._given_up.pop(task, None)
                self._drop_deadline(task)
        except BaseException as error:
            if not frontier.started.refusal_of(request):
                self._own_errors.count_error(error, request)
            frontier.started.record_failure(request, error, round((monotonic() - started) * 1000))
            raise
        frontier.started.record_response(request, response, round((monotonic() - started) * 1000))
        return response

    def _require_sendable(self, frontier: Frontier, request: Request) -> None:
        refusal = frontier.started.refusal_of(request)
        if refusal is not None:
            raise refusal
        if self._aborted or not frontier.started.may_send(request):
            raise _abort_error(request)

    def _set_deadline(self, task: asyncio.Task[Any], deadline: float) -> None:
        self._deadlines[task] = deadline
        if self._next_deadline is None:
            self._next_deadline = asyncio.get_running_loop().call_later(self._deadline_s, self._end_late)

    def _drop_deadline(self, task: asyncio.Task[Any]) -> None:
        self._deadlines.pop(task, None)
        if self._next_deadline is not None and not self._deadlines:
            self._next_deadline.cancel()
            self._next_deadline = None

    def _end_late(self) -> None:
        now = monotonic() + _TICK_S
        late = [task for task, deadline in self._deadlines.items() if deadline <= now]
        for task in late:
            del self._deadlines[task]
        self._give_up(late, self._deadline_error)
        self._next_deadline = None
        if self._deadlines:
            left_s = next(iter(self._deadlines.values())) - monotonic()
            self._next_deadline = asyncio.get_running_loop().call_later(left_s, self._end_late)

    def _deadline_error(self, request: Request) -> Exception:
        return DownloadTimeoutError(f"{request.url} ran into BIGCRAWL_FETCH_DEADLINE, {self._deadline_s:g} s")

    def abort_all(self) -> int:
        self._aborted = True
        return self._give_up(list(self._running), _abort_error)

    def break_off(self) -> int:
        frontier = frontier_of(self._crawler)
        if frontier is None:
            return 0
        bound = [task for task, request in self._running.items() if frontier.started.is_bound(request)]
        return self._give_up(bound, _abort_error)

    def _give_up(self, tasks: list[asyncio.Task[Any]], why: Callable[[Request], Exception]) -> int:
        for task in tasks:
            self._given_up.setdefault(task, why(self._running[task]))
            task.cancel()
        return len(tasks)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handlers, name)


def _abort_error(_request: Request) -> Exception:
    return FetchAbortedError("the node stops, or has no lease")


def _record_proxy(url: str | None) -> None:
    host = urlsplit(url if "://" in (url or "") else f"//{url}").hostname if url else None
    if host:
        record_proxy(host)
