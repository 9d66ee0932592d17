from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from scrapy.http import Response, TextResponse
from scrapy.utils.httpobj import urlparse_cached

from bigcrawl.links import PAGE_PART
from bigcrawl.politeness.backoff_policy import OVERLOADED, retry_after_ms
from bigcrawl.scheduler.adapter.fetch_errors import (
    UNDER_LEASE,
    UrlRefusedError,
    error_outcome,
    refusal_error,
    refusal_outcome,
)
from bigcrawl.scheduler.records.held import HeldUrl, Stage
from bigcrawl.scheduler.records.outcomes import ABORTED, detail_of, number_of
from bigcrawl.url.canonical import host_of

if TYPE_CHECKING:
    from collections.abc import ItemsView

    from scrapy import Request

    from bigcrawl.clock import Clock
    from bigcrawl.scheduler.adapter.engine_probe import EngineProbe
    from bigcrawl.scheduler.adapter.live_requests import LiveRequests
    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.at_gates import Space

TURNS_US: Final = 500


_NO_TRANSFER: tuple[Response | None, int, bool] = (None, 0, False)


class StartedRequests:
    """The requests that were handed out, each with its URL. Reports about other requests are ignored."""

    def __init__(self, probe: EngineProbe, clock: Clock, retry_after_max_ms: int) -> None:
        self._probe = probe
        self._clock = clock
        self._retry_after_max_ms = retry_after_max_ms
        self._held: dict[Request, HeldUrl] = {}
        self._running: HeldUrl | None = None
        self._transfer = _NO_TRANSFER
        self._node: Node | None = None
        self._live: LiveRequests | None = None
        self._unqueued: deque[Request] = deque()
        self._refusals: WeakKeyDictionary[Request, Exception] = WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self._held)

    def items(self) -> ItemsView[Request, HeldUrl]:
        return self._held.items()

    def attach(self, node: Node, live: LiveRequests) -> None:
        self._node, self._live = node, live

    def record_start(self, request: Request, held: HeldUrl) -> None:
        self._held[request] = held

    def end_done(self, node: Node) -> None:
        for request in self._probe.ended(self._held):
            held = self._held.pop(request)
            node.handout.fetches.end(held)
            if self._live is not None:
                self._live.end(request, comes_back=held.outcome == ABORTED or held.comes_again)

    def pass_on(self, request: Request) -> None:
        self._unqueued.append(request if self._probe.has_ended(request) else request.copy())

    def refuse(self, request: Request, why: Exception) -> None:
        """Refuse a request. If it has an errback, the engine gets the request, with the error as its only answer."""
        if request.errback is None or request in self._refusals:
            return  # an errback that asks for the same request again would be called for ever
        if self.is_handed_out(request):
            request = request.copy()  # a middleware has returned it, and the engine still has it
        try:
            reason = str(why)
        except Exception:  # noqa: BLE001 - of an exception of the project's
            reason = type(why).__name__
        self._refusals[request] = UrlRefusedError(request.url, reason)
        self._unqueued.append(request)

    def next_unqueued(self) -> Request | None:
        return self._unqueued.popleft() if self._unqueued else None

    @property
    def has_unqueued(self) -> bool:
        return bool(self._unqueued)

    def is_refused(self, request: Request) -> bool:
        return request in self._refusals

    @property
    def running_url(self) -> str:
        """The URL whose page the spider was last given; empty before the first."""
        return self._running.url if self._running is not None else ""

    def held_of(self, request: Request | None) -> HeldUrl | None:
        return self._held.get(request) if request is not None else None

    def is_handed_out(self, request: Request) -> bool:
        return request in self._held

    def is_page(self, request: Request) -> bool:
        """Whether a request was handed out, and not for a part of a page."""
        return self.is_handed_out(request) and PAGE_PART not in (request._meta or {})

    def try_send(self, request: Request) -> int:
        """Return 0 if a request may be sent now: it is due and keeps its gaps to others. Else return the us to wait.

        An event loop rounds its timers up to milliseconds. So if this node paces the host in microseconds, the wait
        ends half a millisecond early, and the caller tries again in each turn of the loop.
        """
        held = self._held.get(request)
        if self._node is None or (held is None and not _is_under_lease(request)):
            return 0
        if held is not None:
            if held.refusal:
                return 0
            left_us = (held.due_us or 1_000 * held.due_ms) - self._clock.monotonic_us()
            if left_us > 0:
                return max(1, left_us - TURNS_US) if held.due_us else left_us
        return self._node.handout.try_send(self._gaps_of(request, held), held)

    def _gaps_of(self, request: Request, held: HeldUrl | None) -> tuple[Space, ...]:
        assert self._node is not None
        gaps: tuple[Space, ...] = request.meta[UNDER_LEASE] if held is None else held.gaps
        start_gaps = self._node.handout.start_gaps
        if start_gaps.are_of_hosts:
            gaps += start_gaps.of_host(host_of(request.url) if held is None else held.host)
        return gaps

    def may_send(self, request: Request) -> bool:
        """Whether a request may be sent now: this node has its lease and still owns the URL; others always may."""
        node = self._node
        held = self._held.get(request)
        if node is None or (held is None and not _is_under_lease(request)):
            return True
        if not node.handout.lease.is_valid or (held is not None and held.stage is Stage.ENDED):
            return False
        if gaps := self._gaps_of(request, held):
            node.handout.start_gaps.record_sent(gaps)  # its connection has only opened now
        return True

    def is_bound(self, request: Request) -> bool:
        return request in self._held or _is_under_lease(request)

    def address_of(self, request: Request) -> str:
        """Return the checked address for a handed-out request; empty for any other, even one made from it."""
        held = self._held.get(request)
        return held.address if held is not None else ""

    def refusal_of(self, request: Request) -> Exception | None:
        """Return the error if a handed-out request must not be fetched, or was refused; None if it may."""
        held = self._held.get(request)
        if held is None:
            return self._refusals.get(request)
        return held.refusal_error or (refusal_error(request.url, held.refusal) if held.refusal else None)

    def was_answered(self, request: Request) -> bool:
        held = self._held.get(request)
        return held is not None and held.outcome.startswith("status:")

    def download_ms_of(self, request: Request) -> int | None:
        """Return how long a handed-out request took, once it is answered; None for any other."""
        held = self._held.get(request)
        return held.download_ms if held is not None else None

    def record_connected(self, request: Request, took_ms: int) -> None:
        """Record that a new connection was opened for a request, maybe one for robots.txt."""
        if self._node is not None and (request in self._held or _is_under_lease(request)):
            self._node.handout.crowd.record_connected(urlparse_cached(request).netloc, took_ms)

    def ask_for_connection(self) -> bool:
        """Return whether the next request should open a new connection, to show whether the link is free."""
        return self._node is not None and self._node.handout.crowd.ask_for_connection()

    def record_response_head(self, request: Request) -> None:
        if self._node is not None and request in self._held:
            self._node.handout.crowd.record_response_head()

    def record_transfer(self, response: Response, ended_us: int, *, is_kept: bool) -> None:
        """Record when this response was complete, on the boot clock, as the loop may have been busy since."""
        self._transfer = response, ended_us, is_kept
        if self._node is not None:
            self._node.handout.crowd.record_transfer(ended_us // 1_000)

    def record_response(self, request: Request, response: Response, download_ms: int) -> None:
        held = self._held.get(request)
        if held is not None:
            took_ms = self._known_ms(download_ms)
            transferred, ended_us, is_kept = self._transfer
            self._transfer = _NO_TRANSFER
            is_kept = is_kept and transferred is response
            body = response.body
            held.record_download(f"status:{response.status}", took_ms or 0, len(body), is_kept=is_kept)
            if response.status in OVERLOADED:
                held.record_answer(self._retry_after_ms(response))
            self._record_answered(held, took_ms, ended_us if transferred is response else 0)
            if self._node is not None:
                observers = self._node.observers
                observers.record_headers(response.status, response.headers, len(body))
                if response.status == 200 and body:
                    observers.record_answer(held, body)

    def record_unpacked(self, request: Request, response: Response, packed_bytes: int) -> None:
        if self._node is not None and response.status == 200 and request in self._held:
            self._node.observers.record_unpacked(packed_bytes, len(response.body))

    def record_failure(self, request: Request, error: BaseException, download_ms: int) -> None:
        held = self._held.get(request)
        if held is not None:
            outcome = refusal_outcome(held.refusal) if held.refusal else error_outcome(error)
            took_ms = self._known_ms(download_ms)
            held.record_download(outcome, took_ms or 0)
            # A server that has begun to answer is not dead; then a timeout is a sign of congestion.
            has_begun = outcome == "error:timeout" and "download_latency" in request.meta
            self._record_answered(held, took_ms if has_begun else None)

    def record_received(self, request: Request, response: Response) -> None:
        """Record a response, perhaps from a middleware such as Scrapy's HTTP cache."""
        held = self._held.get(request)
        if held is not None and not held.outcome:
            held.record_download(f"status:{response.status}")
            self._record_answered(held)

    def record_too_large(self, request: Request) -> None:
        """Record that an answer is too large to be unpacked, so no spider sees it."""
        held = self._held.get(request)
        if held is not None:
            held.record_download("error:too-large")

    def record_payload(self, request: Request, body: bytes, sha1: bytes) -> None:
        held = self._held.get(request)
        if held is not None:
            held.record_payload(body, sha1)

    def record_filtered(self, request: Request, rule: str) -> None:
        held = self._held.get(request)
        if held is not None:
            held.record_detail(number_of(rule))

    def record_unread_page(self, request: Request, reason: str) -> None:
        """Record why a page is not read, or only in part; the first reason counts."""
        held = self._held.get(request)
        if held is not None and not held.detail:
            held.record_detail(detail_of(reason))

    def record_running(self, request: Request | None) -> None:
        """Record that the spider is given the page of a request, from which it may never return."""
        held = self._held.get(request) if request is not None else None
        if held is not None:
            self._running = held
            if self._node is not None and (in_process := self._node.handout.in_process).running is not held:
                in_process.record_running(held)

    def record_page(self, response: Response) -> None:
        node = self._node
        if node is not None and response.status == 200:
            held = self.held_of(response.request)
            if held is not None:
                node.observers.record_page(held, response.body, is_text=isinstance(response, TextResponse))

    def record_parsed(self, request: Request | None) -> None:
        """Record that the spider has returned from a page, and no item of it is in a pipeline."""
        held = self._held.get(request) if request is not None else None
        if held is not None and self._node is not None:
            self._node.handout.in_process.record_parsed(held)

    def _known_ms(self, download_ms: int) -> int | None:
        """Return how long a fetch took; None if the lease has ended: the node may have slept through the answer."""
        node = self._node
        return download_ms if node is None or node.handout.lease.is_valid else None

    def _record_answered(self, held: HeldUrl, took_ms: int | None = None, ended_us: int = 0) -> None:
        """Record the end of a fetch, at `ended_us` if known; `took_ms` if an answer has begun."""
        if self._node is not None:
            handout = self._node.handout
            handout.fetches.record_answered(held, ended_us)
            if took_ms is not None:
                handout.crowd.record_answer(held.host, took_ms)

    def _retry_after_ms(self, response: Response) -> int:
        value, date = (response.headers.get(name, b"") or b"" for name in ("Retry-After", "Date"))
        if not value or not self._retry_after_max_ms:
            return 0
        now_ms = self._clock.now_ms()
        return retry_after_ms(value.decode("latin-1"), date.decode("latin-1"), now_ms, self._retry_after_max_ms)


def _is_under_lease(request: Request) -> bool:
    return request._meta is not None and UNDER_LEASE in request._meta
