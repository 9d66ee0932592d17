"""The requests that the engine works on, and what the downloader reports about them (steps 11 to 13)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from scrapy.http import TextResponse

from bigcrawl.politeness.backoff_policy import OVERLOADED, retry_after_ms
from bigcrawl.scheduler.adapter.fetch_errors import (
    UNDER_LEASE,
    UrlRefusedError,
    error_outcome,
    refusal_error,
    refusal_outcome,
)
from bigcrawl.scheduler.records.held import Stage
from bigcrawl.scheduler.records.outcomes import ABORTED
from bigcrawl.scheduler.rules.page_rules import number_of

if TYPE_CHECKING:
    from collections.abc import ItemsView

    from scrapy import Request
    from scrapy.http import Response

    from bigcrawl.clock import Clock
    from bigcrawl.revisiting.visit import Answer, Visit
    from bigcrawl.scheduler.adapter.engine_probe import EngineProbe
    from bigcrawl.scheduler.adapter.live_requests import LiveRequests
    from bigcrawl.scheduler.handout.revisits import Visited
    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.held import HeldUrl

TURNS_US: Final = 500


class StartedRequests:
    """The requests that were handed out, each with its URL. Reports about other requests are ignored."""

    def __init__(self, probe: EngineProbe, clock: Clock, retry_after_max_ms: int) -> None:
        self._probe = probe
        self._clock = clock
        self._retry_after_max_ms = retry_after_max_ms
        self._held: dict[Request, HeldUrl] = {}
        self._running: HeldUrl | None = None
        self._node: Node | None = None
        self._live: LiveRequests | None = None
        self._refused: deque[Request] = deque()
        self._refusals: WeakKeyDictionary[Request, Exception] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"<StartedRequests {len(self._held)}>"

    def __len__(self) -> int:
        return len(self._held)

    def items(self) -> ItemsView[Request, HeldUrl]:
        """The requests, each with its URL."""
        return self._held.items()

    def attach(self, node: Node, live: LiveRequests) -> None:
        """The requests come from this node, which has joined its crawl."""
        self._node, self._live = node, live

    # --- starts and ends

    def note_start(self, request: Request, held: HeldUrl) -> None:
        """The engine has been given the request of a URL."""
        self._held[request] = held

    def end_done(self, node: Node) -> None:
        """End the URLs of the requests that the engine is done with."""
        ended = [request for request in self._held if self._probe.has_ended(request)]
        for request in ended:
            held = self._held.pop(request)
            node.handout.fetches.end(held)
            if self._live is not None:
                self._live.end(request, comes_back=held.outcome == ABORTED or held.revisit is not None)

    # --- requests that were not taken

    def refuse(self, request: Request, why: Exception) -> None:
        """A request was not taken. If it has an errback, the engine gets it, and the error as the only answer."""
        if request.errback is not None:
            self._refusals[request] = UrlRefusedError(request.url, str(why))
            self._refused.append(request)

    def next_refused(self) -> Request | None:
        """The next refused request for the engine, if there is one."""
        return self._refused.popleft() if self._refused else None

    @property
    def has_refused(self) -> bool:
        """Whether refused requests wait for the engine."""
        return bool(self._refused)

    def is_refused(self, request: Request) -> bool:
        """Whether this request was not taken."""
        return request in self._refusals

    # --- what the spider is given

    @property
    def running_url(self) -> str:
        """The URL whose page the spider was last given; empty before the first."""
        return self._running.url if self._running is not None else ""

    # --- questions about a request

    def held_of(self, request: Request | None) -> HeldUrl | None:
        """The URL of a handed-out request; None for any other."""
        return self._held.get(request) if request is not None else None

    def is_handed_out(self, request: Request) -> bool:
        """Whether a request came from the frontier, so that its host may be asked."""
        return request in self._held

    def try_send(self, request: Request) -> int:
        """Send a request now if it is due, and keeps its gaps to others that were sent. Return 0, or the us to wait.

        An event loop rounds its timers up to milliseconds. So the last half of one is spent in turns of the loop, if
        this node counts the turns of the host in microseconds.
        """
        held = self._held.get(request)
        if self._node is None or (held is None and not _is_under_lease(request)):
            return 0
        if held is not None and not held.refusal:
            left_us = (held.due_us or 1_000 * held.due_ms) - self._clock.monotonic_us()
            if left_us > 0:
                return max(1, left_us - TURNS_US) if held.due_us else left_us
        gaps = request.meta[UNDER_LEASE] if held is None else held.gaps
        return 1_000 * self._node.handout.start_gaps.try_send(gaps)

    def may_send(self, request: Request) -> bool:
        """Whether a request may be sent now; this is asked some microseconds before.

        A request that has nothing to do with the frontier may always be sent. Others may while this node has its lease
        and still owns the URL: after a sleep it may have requests under way to hosts that other nodes have fetched from
        since.
        Cost: 0.4 us.
        """
        node = self._node
        held = self._held.get(request)
        if node is None or (held is None and not _is_under_lease(request)):
            return True
        return node.handout.lease.is_valid and (held is None or held.stage is not Stage.ENDED)

    def is_bound(self, request: Request) -> bool:
        """Whether a request must be given up when the lease is over."""
        return request in self._held or _is_under_lease(request)

    def address_of(self, request: Request) -> str:
        """The checked address for a handed-out request; empty for any other, even one made from it."""
        held = self._held.get(request)
        return held.address if held is not None else ""

    def refusal_of(self, request: Request) -> Exception | None:
        """The error if a handed-out request must not be fetched, or was not taken; None if it may."""
        held = self._held.get(request)
        if held is None:
            return self._refusals.get(request)
        return held.refusal_error or (refusal_error(request.url, held.refusal) if held.refusal else None)

    def was_answered(self, request: Request) -> bool:
        """Whether a handed-out request has a usable answer."""
        held = self._held.get(request)
        return held is not None and held.outcome.startswith("status:")

    def known_visit(self, request: Request) -> Visit | None:
        """What is known of a handed-out request's page from earlier visits; None if there were none."""
        held, node = self._held.get(request), self._node
        return None if held is None or node is None else node.handout.revisits.known_of(held)

    def download_ms_of(self, request: Request) -> int | None:
        """How long a handed-out request took, once it is answered; None for any other."""
        held = self._held.get(request)
        return held.download_ms if held is not None else None

    # --- reports about a request

    def note_response(self, request: Request, response: Response, download_ms: int) -> None:
        """A handed-out request was answered."""
        held = self._held.get(request)
        if held is not None:
            took_ms = self._known_ms(download_ms)
            held.note_download(f"status:{response.status}", took_ms or 0, len(response.body))
            if response.status in OVERLOADED:
                held.note_retry_after(self._retry_after_ms(response))
            self._note_answered(held, took_ms)
            self._count_answer(response)
            node = self._node
            if node is None or node.same_content is None or response.status != 200 or not response.body:
                return
            # A page that is visited again has its own content, and says nothing about others.
            if node.handout.revisits.known_of(held) is None:
                rows = node.same_content.note(held.host, response.body)
                if node.wildcards is not None and node.wildcards.has_verdicts:
                    rows += node.wildcards.take(node.crawl.pld_of(held.host))
                held.note_pld_rows(rows)

    def _count_answer(self, response: Response) -> None:
        if self._node is not None:
            headers = response.headers  # their own look-up costs ten times as much
            types, encodings = dict.get(headers, b"Content-Type"), dict.get(headers, b"Content-Encoding")
            self._node.tallies.note_answer(
                response.status, types[0] if types else None, encodings[0] if encodings else None, len(response.body)
            )

    def note_unpacked(self, request: Request, response: Response, packed_bytes: int) -> None:
        """The body of an answer was unpacked from so many bytes. It counts if its request was handed out."""
        if self._node is not None and response.status == 200 and request in self._held:
            self._node.tallies.note_unpacked(packed_bytes, len(response.body))

    def note_failure(self, request: Request, error: BaseException, download_ms: int) -> None:
        """A handed-out request got no answer."""
        held = self._held.get(request)
        if held is not None:
            outcome = refusal_outcome(held.refusal) if held.refusal else error_outcome(error)
            took_ms = self._known_ms(download_ms)
            held.note_download(outcome, took_ms or 0)
            # A server that has begun to answer is not dead; then a timeout is a sign of congestion.
            has_begun = outcome == "error:timeout" and "download_latency" in request.meta
            self._note_answered(held, took_ms if has_begun else None)

    def note_received(self, request: Request, response: Response) -> None:
        """A handed-out request has a response, perhaps from a middleware such as Scrapy's HTTP cache."""
        held = self._held.get(request)
        if held is not None and not held.outcome:
            held.note_outcome(f"status:{response.status}")
            self._note_answered(held)

    def note_too_large(self, request: Request) -> None:
        """The answer to a handed-out request is too large to be unpacked, and no spider sees it."""
        held = self._held.get(request)
        if held is not None:
            held.note_outcome("error:too-large")

    def note_visit(self, request: Request, answer: Answer) -> Visited | None:
        """Plan the next visit of a handed-out request's page by this answer; None for any other request."""
        held, node = self._held.get(request), self._node
        return None if held is None or node is None else node.handout.revisits.note_answer(held, answer)

    def note_payload(self, request: Request, body: bytes, sha1: bytes) -> None:
        """The body of a handed-out request's answer was stored, and has this SHA-1. Cost: 0.2 us."""
        held = self._held.get(request)
        if held is not None:
            held.note_payload(body, sha1)

    def note_filtered(self, request: Request, rule: str) -> None:
        """A filter drops the page of a handed-out request, by this rule."""
        held = self._held.get(request)
        if held is not None:
            held.note_filtered(number_of(rule))

    def note_running(self, request: Request | None) -> None:
        """The spider is given the page of a request, and may never return from it. Cost: 0.3 us."""
        held = self._held.get(request) if request is not None else None
        if held is not None:
            self._running = held
            if self._node is not None:
                self._node.handout.in_process.note_running(held)

    def note_page(self, response: Response) -> None:
        """Note the page that the spider is about to get, without content encoding. Cost: as `PageContents.note`."""
        node = self._node
        if node is not None and node.contents is not None and response.status == 200:
            held = self.held_of(response.request)
            if held is not None:
                node.contents.note(held, response.body, is_text=isinstance(response, TextResponse))

    def note_parsed(self, request: Request | None) -> None:
        """The spider has returned from the page of a request, and no item of it is in a pipeline. Cost: 0.3 us."""
        held = self._held.get(request) if request is not None else None
        if held is not None and self._node is not None:
            self._node.handout.in_process.note_parsed(held)

    def _known_ms(self, download_ms: int) -> int | None:
        """How long a fetch took; None if the lease has ended, because the node may have slept through the answer."""
        node = self._node
        return download_ms if node is None or node.handout.lease.is_valid else None

    def _note_answered(self, held: HeldUrl, took_ms: int | None = None) -> None:
        """A fetch is over. `took_ms` is how long its answer took, if one has begun."""
        if self._node is not None:
            handout = self._node.handout
            handout.fetches.note_answered(held)
            if took_ms is not None:
                handout.crowd.note(held.host, took_ms)

    def _retry_after_ms(self, response: Response) -> int:
        value, date = (response.headers.get(name, b"") or b"" for name in ("Retry-After", "Date"))
        if not value or not self._retry_after_max_ms:
            return 0
        now_ms = self._clock.now_ms()
        return retry_after_ms(value.decode("latin-1"), date.decode("latin-1"), now_ms, self._retry_after_max_ms)


def _is_under_lease(request: Request) -> bool:
    return request._meta is not None and UNDER_LEASE in request._meta
