"""Scrapy's face of the frontier: `SCHEDULER = "bigcrawl.scheduler.scheduler.Scheduler"`; no I/O in its calls.

What Scrapy readers will assume otherwise:

- `enqueue_request` returning True means *accepted for the seen check*, not *new*: whether a URL is new is
  decided by its partition, maybe on another node, when the batch that carries it is merged.
- `next_request` never waits for Redis or disk: it pops a deque. None means "not now".
- Scrapy's downloader slots are not our politeness, the ready heap is.

No exception leaves these calls: one that did could hang the engine so that even SIGTERM would not end it.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from scrapy.core.scheduler import BaseScheduler
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.reactor import is_reactor_installed

from bigcrawl.clock import SystemClock
from bigcrawl.config import read_config
from bigcrawl.exceptions import (
    BigcrawlError,
    OwnershipLostError,
    RequestNotStorableError,
    TransientStoreError,
)
from bigcrawl.politeness.addresses import AddressGuard
from bigcrawl.politeness.backoff_policy import OVERLOADED, retry_after_ms
from bigcrawl.politeness.dns_shared import join_dns, leave_dns, shared_dns
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.embedded import EmbeddedServer
from bigcrawl.scheduler.adapter.engine_probe import EngineProbe
from bigcrawl.scheduler.adapter.fetch_errors import UNDER_LEASE, error_outcome, refusal_error, refusal_outcome
from bigcrawl.scheduler.adapter.registry import feeds_of, mark_failed, register, storage_of
from bigcrawl.scheduler.adapter.request_codec import decode_request, encode_request, links_encoder
from bigcrawl.scheduler.adapter.robots_fetch import RobotsFetch
from bigcrawl.scheduler.adapter.tries import Tries
from bigcrawl.scheduler.adapter.values import note_modules
from bigcrawl.scheduler.crawl.crawl_record import has_other_code
from bigcrawl.scheduler.crawl.deletion import delete_crawl
from bigcrawl.scheduler.node.memory import tame_memory, untrack_async_generators
from bigcrawl.scheduler.node.node import Node
from bigcrawl.scheduler.node.watchdog import Watchdog
from bigcrawl.scheduler.records.held import Stage
from bigcrawl.scheduler.records.queued_url import TRAP_SHIFT
from bigcrawl.url.canonical import UrlError
from bigcrawl.url.shape import Shapes, kinds_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Self

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.internet.defer import Deferred

    from bigcrawl.links import Links
    from bigcrawl.scheduler.crawl.survey import Survey
    from bigcrawl.scheduler.records.held import HeldUrl
    from bigcrawl.scheduler.records.page_storage import Feeds
    from bigcrawl.url.key import UrlKey

logger = logging.getLogger(__name__)

ROOM_POLL_S = 0.1
LOOK_OUT_S = 0.25
FLUSH_TRIES = 100  # five seconds; Redis may be away
CLOSE_MS = 9_000  # from the stop signal on: the second to ten is for Scrapy's own closing
CLOSE_MS_MIN = 500  # a server that is well ends in a tenth of that
JOIN_LOOK_S = 0.1  # between two looks whether the start was called off
JOIN_LOOKS = 5  # before the start is tried again


class Scheduler(BaseScheduler):
    """The crawler's end of the frontier."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.config = read_config(crawler.settings)
        self.guard = AddressGuard(
            self.config.politeness.allow_private_addresses, self.config.politeness.allow_addresses
        )
        self._clock = SystemClock()
        self._marks = Shapes(self.config.traps).marks if self.config.traps.share else None
        self._probe = EngineProbe(crawler)
        self._started: dict[Request, HeldUrl] = {}
        self._tries = Tries(self._started, self.config.frontier.url_bytes_max, self._key_of)
        self._start_requests: WeakSet[Request] = WeakSet()
        self._pages: WeakKeyDictionary[Request, str] = WeakKeyDictionary()  # where requests on their way were found
        self._embedded: EmbeddedServer | None = None
        self._client: RedisClient | None = None
        self._spider: Spider | None = None
        self._feeds: Feeds | None = None
        self._has_begun = False
        self._failed: BigcrawlError | None = None
        self._said: set[str] = set()
        self._abort_at: float | None = None
        self._watchdog: Watchdog | None = None
        self._closed = False
        self.node: Node | None = None
        self.last_survey: Survey | None = None
        self._closing: asyncio.Future[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        frontier = cls(crawler)
        register(crawler, frontier)
        return frontier

    def __repr__(self) -> str:
        return f"<Scheduler started={len(self._started)} node={self.node!r}>"

    # --- opening and closing

    def open(self, spider: Spider) -> Deferred[None]:
        return deferred_from_coro(self._open(spider))

    async def _open(self, spider: Spider) -> None:
        self._spider = spider
        self._feeds = feeds_of(self._crawler)
        note_modules()
        join_dns(self.config.dns)
        try:
            if self.config.crawl.is_fresh and any(await delete_crawl(self.config)):
                logger.info("crawl %(name)s begins anew: BIGCRAWL_FRESH", {"name": self.config.crawl.name})
            url = self.config.crawl.redis_url or await self._start_embedded()
            self.node = await self._join(url)
        except BigcrawlError as error:
            self.fail(error)  # and `ExitStatus` closes the spider as soon as that can be done
            return
        tame_memory()
        if is_reactor_installed():
            untrack_async_generators()
        self._watchdog = Watchdog(self.config.frontier.standstill_ms / 1000, self._running_url)
        self._watchdog.start(asyncio.get_running_loop())
        self._look_out()
        await self._speak_of_code(spider)
        if self.node.finished:
            logger.info(
                "crawl %(name)s is finished: %(pages)d pages, which are not fetched again; -s BIGCRAWL_FRESH=1 begins "
                "it anew, another BIGCRAWL_CRAWL begins another",
                {"name": self.config.crawl.name, "pages": self.node.pages},
            )

    async def _speak_of_code(self, spider: Spider) -> None:
        """Say that the spider was edited since the crawl began: what was fetched does not pass through it again."""
        assert self._client is not None
        name, digest = self.config.crawl.name, code_digest(spider)
        try:
            is_edited = bool(digest) and await has_other_code(self._client, name, spider.name, digest)
        except TransientStoreError:
            return  # the node says itself that Redis is away
        if is_edited:
            logger.warning(
                "the code of spider %(spider)s was edited since crawl %(name)s began: what was fetched does not pass "
                "through it again; -s BIGCRAWL_FRESH=1 begins the crawl anew",
                {"spider": spider.name, "name": name},
            )

    async def _join(self, url: str) -> Node:
        """Start this node; what passes by itself is waited for: a Redis that restarts, or cannot write, a full disk.

        An embedded server that dies meanwhile is started again.

        Raises:
            BigcrawlError: waiting does not mend it, took too long, or somebody has asked for the end.
        """
        now = asyncio.get_running_loop().time
        until = now() + self.config.frontier.start_wait_ms / 1000
        while True:
            self._client = RedisClient(url)
            node = self._new_node(self._client)
            try:
                await node.start()
            except BigcrawlError as error:
                self._has_begun = self._has_begun or node.has_begun_crawl
                await node.abandon()
                await self._client.close()
                if not isinstance(error, TransientStoreError | OwnershipLostError) or now() >= until:
                    raise
                if "start" not in self._said:
                    self._said.add("start")
                    logger.warning(
                        "cannot start yet: %(error)s; trying for %(seconds)d s (BIGCRAWL_START_WAIT)",
                        {"error": error, "seconds": round(until - now())},
                    )
                await self._rest_before_start()
                if self._is_called_off():
                    raise
                if self._embedded is not None:
                    await asyncio.to_thread(self._embedded.ensure_running)
            else:
                self._has_begun = self._has_begun or node.has_begun_crawl
                return node

    @property
    def is_resumed(self) -> bool:
        """Whether the crawl was begun before this process joined it."""
        return self.node is not None and not self._has_begun

    async def _rest_before_start(self) -> None:
        for _ in range(JOIN_LOOKS):
            if self._is_called_off():
                return
            await asyncio.sleep(JOIN_LOOK_S)

    def _is_called_off(self) -> bool:
        """Whether a signal asked for the end while the spider was still being opened; Scrapy looks at it afterwards."""
        return self._crawler.crawling is False

    def _new_node(self, client: RedisClient) -> Node:
        node = Node(
            self.config,
            client,
            shared_dns(),
            self._clock,
            RobotsFetch(self._crawler),
            poll_ended=self._poll_ended,
            may_take=self._may_take,
            may_acknowledge=self._may_acknowledge,
            on_fatal=self.fail,
            revive=self._embedded.ensure_running if self._embedded else None,
        )
        node.handout.held.storage = storage_of(self._crawler)
        node.handout.wake_engine = node.handout.suspects.wake_engine = self._probe.wake
        node.handout.crowd.on_change = self._note_limit
        self._note_limit(node.handout.crowd.limit)
        node.handout.break_off = self._break_off
        return node

    async def _start_embedded(self) -> str:
        self._embedded = EmbeddedServer(self.config.crawl.crawl_dir / "redis")
        return await asyncio.to_thread(self._embedded.start)

    def close(self, reason: str) -> Deferred[None]:
        return deferred_from_coro(self._close())

    async def _close(self) -> None:
        self._closed = True
        if self._watchdog is not None:
            self._watchdog.stop()
        if self.node is not None:
            self.last_survey = await self.node.close()
        await leave_dns()
        if self._client is not None:
            await self._client.close()
        if self._embedded is not None:
            try:
                await asyncio.to_thread(self._embedded.leave, self._left_to_close_ms())
            except BigcrawlError as error:
                logger.warning("%(error)s", {"error": error})

    def _left_to_close_ms(self) -> int:
        """What is left of the time in which a stopped crawl must be gone."""
        if self._abort_at is None:
            return CLOSE_MS
        waited_ms = round((asyncio.get_running_loop().time() - self._abort_at) * 1000)
        return max(CLOSE_MS_MIN, CLOSE_MS - waited_ms - self.config.politeness.stop_grace_ms)

    def fail(self, error: BigcrawlError) -> None:
        """End the crawl because of an error that waiting will not mend: one line, and exit status 1."""
        if self._failed is not None:
            return
        self._failed = error
        logger.error("%(error)s", {"error": error})
        mark_failed(self._crawler)
        if self._crawler.engine.running and not self._probe.is_closing():
            self._closing = asyncio.ensure_future(self._close_spider("bigcrawl_failed"))

    async def _close_spider(self, reason: str) -> None:
        try:
            await self._crawler.engine.close_spider_async(reason=reason)
        except RuntimeError:  # it was never opened, or is closed already
            return

    # --- what the engine calls

    def has_pending_requests(self) -> bool:
        if self.node is None or self._failed is not None:
            return False
        return bool(self._started) or not (self.node.finished and self.config.crawl.close_when_empty)

    def enqueue_request(self, request: Request) -> bool:
        try:
            return self._enqueue(request)
        except UrlError as error:
            self._drop(f"url-{error.reason}", str(error))
        except RequestNotStorableError as error:
            self._drop("not-storable", str(error), about=error.key_path)
        except Exception:
            logger.exception("a request could not be queued: %(request)s", {"request": request})
            self._drop("error", "")
        return False

    def next_request(self) -> Request | None:
        node = self.node
        if node is None:
            return None
        try:
            if node.handout.suspects:
                self._poll_ended()  # what waits for their end has waited enough
            while self._may_take() and (held := node.handout.pop()) is not None:
                request = self._build(held)
                if request is not None:
                    self._started[request] = held
                    node.handout.note_started(held)
                    return request
        except Exception:
            logger.exception("bigcrawl could not hand out a request")
        if node.handout.buffered == 0:
            node.wake()
        return None

    # --- links and start requests, from the spider middleware

    def offer_links(self, links: Links, urls: Iterable[str], depth: int, page: str = "") -> int:
        """Take a batch of canonical URLs, found on a page if any; return how many were not sent just before."""
        node = self.node
        if node is None:
            return 0
        if links.callback or links.errback:
            links.check_methods(self._spider)
        encode = links_encoder(links, depth, self._marks)
        if links.meta:
            self._heed_meta(links.meta)
        urls = list(dict.fromkeys(urls))
        if page and node.link_graph is not None:
            node.link_graph.note(page, urls)
        offered = 0
        shapes: Counter[int] = Counter()
        keys = node.keys
        for at in node.outbox.not_recent(keys.marks_of(urls)):
            try:
                queued = encode(keys.of_url(urls[at]), urls[at])
            except (ValueError, IndexError):  # said to be canonical, and no URL at all
                self._drop("url", urls[at])
                continue
            node.offer(queued)
            offered += 1
            if queued.flags:
                shapes[queued.flags] += 1
        for flags, urls_alike in shapes.items():
            self._count_shapes(flags, urls_alike)
        return offered

    def note_start_request(self, request: Request) -> None:
        """The next time this request is enqueued it is a start request: seen-checked whatever it says."""
        self._start_requests.add(request)

    def note_found(self, request: Request, page: str) -> None:
        """A callback made this request of a page: the next time it is enqueued it is a link from there."""
        if self.node is not None and self.node.link_graph is not None:
            self._pages[request] = page

    def tell_sitemaps(self, tell: Callable[[str, list[str]], Awaitable[None]]) -> None:
        """Have `tell` called with each robots.txt that is fetched and names sitemaps, and with their URLs.

        What it queues is in Redis before the rules of that robots.txt are kept: then another node, or the next run,
        fetches the file again and tells of it again.
        """
        node = self.node
        if node is None:
            return

        async def tell_and_flush(robots_url: str, urls: list[str]) -> None:
            await tell(robots_url, urls)
            offered, tries_left = node.outbox.offered, FLUSH_TRIES
            while node.outbox.flushed < offered and tries_left and not self._probe.is_closing():
                node.wake()
                tries_left -= 1
                await asyncio.sleep(0.05)

        node.robots.tell_sitemaps = tell_and_flush

    async def wait_for_room(self) -> None:
        """Wait while the outbox is full; not while the spider closes, whose links must not be refused."""
        node = self.node
        while node is not None and node.is_crowded and not self._probe.is_closing() and self._failed is None:
            node.wake()
            await asyncio.sleep(ROOM_POLL_S)

    async def claim_start(self, spider: Spider) -> bool:
        """Wait until the start requests are this node's (True) or done by another or an earlier one (False)."""
        digest = start_digest(spider)
        while self.node is not None and not self._probe.is_closing():
            try:
                answer = await self.node.claim_start(digest)
            except TransientStoreError:
                answer = 0
            if answer:
                return answer == 1
            await asyncio.sleep(1)
        return False

    async def end_start(self) -> None:
        """All start requests are offered: say so to the crawl once they are in the inboxes."""
        node = self.node
        if node is None:
            return
        offered = node.outbox.offered
        while not self._probe.is_closing():
            if node.outbox.flushed >= offered:
                try:
                    await node.starts.end()
                    return
                except TransientStoreError:
                    pass
            node.wake()
            await asyncio.sleep(0.05)

    async def give_up_start(self) -> None:
        """The spider's `start` failed: leave its requests to the next run, and do not wait for them in this one."""
        node = self.node
        while node is not None and node.starts.are_under_way and not self._probe.is_closing():
            try:
                await node.starts.leave_undone()
            except TransientStoreError:
                await asyncio.sleep(1)

    # --- words from and to the downloader

    def is_handed_out(self, request: Request) -> bool:
        """Whether a request came from the frontier, and so has its host's turn."""
        return request in self._started

    def may_send(self, request: Request) -> bool:
        """Whether a request may be put on the wire now; it is asked at the last moment, some microseconds before that.

        Always, if it is none of the frontier's. Else while this node has its lease, and the URL is still its own: a
        node that slept finds requests that it had begun, and of whose hosts others have fetched since.
        Cost: 0.4 us.
        """
        node = self.node
        held = self._started.get(request)
        if node is None or (held is None and not self._is_under_lease(request)):
            return True
        return node.handout.has_lease and (held is None or held.stage is not Stage.ENDED)

    def is_bound(self, request: Request) -> bool:
        """Whether a request has to be given up when the lease is over."""
        return request in self._started or self._is_under_lease(request)

    def address_of(self, request: Request) -> str:
        """The address that was checked for a handed-out request; empty for any other, even one made from it."""
        held = self._started.get(request)
        return held.address if held is not None else ""

    def refusal_of(self, request: Request) -> Exception | None:
        """Why a handed-out request must not be fetched; None when it may."""
        held = self._started.get(request)
        return refusal_error(request.url, held.refusal) if held is not None and held.refusal else None

    def note_response(self, request: Request, response: Response, download_ms: int) -> None:
        """A handed-out request was answered."""
        held = self._started.get(request)
        if held is not None:
            held.outcome = f"status:{response.status}"
            held.fetched_bytes += len(response.body)
            took_ms = self._known_ms(download_ms)
            held.download_ms = took_ms or 0
            self._note_answered(held, took_ms)
            if response.status in OVERLOADED:
                held.retry_after_ms = self._retry_after_ms(response)
            node = self.node
            if node is not None and node.same_content is not None and response.status == 200 and response.body:
                held.remark = node.same_content.note(held.host, response.body)
                if node.wildcards is not None and node.wildcards.has_verdicts:
                    held.remark += node.wildcards.take(node.pld_of(held.host))

    def note_running(self, request: Request | None) -> None:
        """The page of a request is with the spider now, should it stay there. Cost: 0.2 us."""
        held = self._started.get(request) if request is not None else None
        if held is not None and self.node is not None:
            self.node.handout.in_process.running = held

    def was_answered(self, request: Request) -> bool:
        """Whether a handed-out request has an answer, one that could be used."""
        held = self._started.get(request)
        return held is not None and held.outcome.startswith("status:")

    def note_received(self, request: Request, response: Response) -> None:
        """A handed-out request has a response, maybe one that a middleware had: Scrapy's HTTP cache, for instance."""
        held = self._started.get(request)
        if held is not None and not held.outcome:
            held.outcome = f"status:{response.status}"
            self._note_answered(held)

    def note_too_large(self, request: Request) -> None:
        """The body of a handed-out request's answer is not unpacked: no spider sees it."""
        held = self._started.get(request)
        if held is not None:
            held.outcome = "error:too-large"

    def note_failure(self, request: Request, error: BaseException, download_ms: int) -> None:
        """A handed-out request got no answer."""
        held = self._started.get(request)
        if held is not None:
            held.outcome = refusal_outcome(held.refusal) if held.refusal else error_outcome(error)
            took_ms = self._known_ms(download_ms)
            held.download_ms = took_ms or 0
            # A server that began to answer is not dead: that time was up is a sign of a crowd.
            has_begun = held.outcome == "error:timeout" and "download_latency" in request.meta
            self._note_answered(held, took_ms if has_begun else None)

    # --- inside

    def _known_ms(self, download_ms: int) -> int | None:
        """How long a fetch took, unless the lease has ended meanwhile: the node may have slept through an answer."""
        node = self.node
        return download_ms if node is None or node.handout.has_lease else None

    def _note_answered(self, held: HeldUrl, took_ms: int | None = None) -> None:
        """A fetch is over; how long the answer took, if one had begun."""
        if self.node is not None:
            handout = self.node.handout
            handout.note_answered(held)
            if took_ms is not None:
                handout.crowd.note(held.host, took_ms)

    def _note_limit(self, fetches: int) -> None:
        assert self._crawler.stats is not None
        self._crawler.stats.set_value("bigcrawl/fetches/limit", fetches)

    @staticmethod
    def _is_under_lease(request: Request) -> bool:
        return request._meta is not None and UNDER_LEASE in request._meta

    def _break_off(self) -> None:
        """The lease is over: what runs is given up."""
        break_off = getattr(self._crawler.engine.downloader, "break_off", None)
        if break_off is not None and (given_up := break_off()):
            logger.warning(
                "this node slept, or heard nothing of Redis, for as long as its lease; it gives up %(count)d fetches",
                {"count": given_up},
            )

    def _enqueue(self, request: Request) -> bool:
        node = self.node
        if node is None or self._spider is None:
            return False
        is_start = request in self._start_requests
        self._start_requests.discard(request)
        meta = request._meta or {}
        if meta:
            self._heed_meta(meta)
        held = self._tries.tried_again(request, meta)
        if held is not None:
            self._tries.try_again(held, request, self._spider, node.handout)
            return True
        is_redirect = self._tries.is_redirect(meta)
        checked = is_start or not request.dont_filter or is_redirect
        jar = meta.get("cookiejar")
        if jar is not None and not (is_start or (is_redirect and self._tries.is_redirect_in_jar(meta))):
            jar = None
        url, canonical = encode_request(
            request,
            self._spider,
            key_of=node.keys.of_request,
            checked=checked,
            url_bytes_max=self.config.frontier.url_bytes_max,
            marks=self._marks,
            jar=jar,
        )
        is_plain = request.method == "GET" and not request.body and jar is None
        if node.link_graph is not None and (page := self._pages.pop(request, "")):
            node.link_graph.note(page, (canonical,))
        if checked and node.outbox.is_recent(node.keys.mark_of(canonical) if is_plain else url.key):
            return False
        node.offer(url)
        if url.flags:
            self._count_shapes(url.flags)
        return True

    def _running_url(self) -> str:
        running = self.node.handout.in_process.running if self.node is not None else None
        return running.url if running is not None else ""

    def _key_of(self, canonical: str, method: str, body: bytes, jar: bytes) -> UrlKey:
        assert self.node is not None
        return self.node.keys.of_request(canonical, method, body, jar)

    def _retry_after_ms(self, response: Response) -> int:
        value, date = (response.headers.get(name, b"") or b"" for name in ("Retry-After", "Date"))
        if not value or not self.config.politeness.retry_after_max_ms:
            return 0
        longest_ms = self.config.politeness.retry_after_max_ms
        return retry_after_ms(value.decode("latin-1"), date.decode("latin-1"), self._clock.now_ms(), longest_ms)

    def _build(self, held: HeldUrl) -> Request | None:
        """The request of a held URL; None, counted, when the spider cannot run it any more."""
        assert self._spider is not None
        assert self.node is not None
        try:
            return decode_request(held.fields.body, self._spider)
        except Exception as error:  # noqa: BLE001 - a spider's class or methods may raise anything
            self._say_once("undecodable", f"{held.url} cannot be run by this spider and is dropped: {error}")
            self.node.handout.give_up(held, "undecodable")
            return None

    def _poll_ended(self) -> None:
        """Find the requests that the engine is done with."""
        if self.node is None:
            return
        ended = [request for request in self._started if self._probe.has_ended(request)]
        for request in ended:
            self.node.handout.end_fetched(self._started.pop(request))
        if self._probe.is_closing():
            self._hurry()
        elif self.node.has_reached_max and not self.node.stopping and self._probe.is_open():
            self.node.stopping = True
            logger.info("BIGCRAWL_MAX_PAGES reached: %(pages)d pages", {"pages": self.node.pages})
            self._closing = asyncio.ensure_future(self._close_spider("bigcrawl_max_pages"))

    def _look_out(self) -> None:
        """Notice every moment that the spider closes, even while the pump waits for a Redis that hangs."""
        if self._closed:
            return
        asyncio.get_running_loop().call_later(LOOK_OUT_S, self._look_out)
        if self._probe.is_closing():
            self._hurry()

    def _hurry(self) -> None:
        """The spider closes: what was not started goes back; what runs has BIGCRAWL_STOP_GRACE to end."""
        assert self.node is not None
        now = asyncio.get_running_loop().time()
        if self._abort_at is None:
            self.node.stop()
            self.node.handout.return_unstarted()
            self._abort_at = now + self.config.politeness.stop_grace_ms / 1000
        elif now >= self._abort_at:
            abort = getattr(self._crawler.engine.downloader, "abort", None)
            if abort is not None:
                abort()

    def _may_take(self) -> bool:
        storage = storage_of(self._crawler)
        if self._failed is not None or self._probe.is_closing() or (self._feeds is not None and self._feeds.is_stuck):
            return False
        return storage is None or storage.is_flushed()

    def _may_acknowledge(self) -> bool:
        """Whether what has ended until now may be acknowledged: its items are safe, its pages are being made so."""
        storage = storage_of(self._crawler)
        return (storage is None or storage.is_flushed()) and (self._feeds is None or self._feeds.flush())

    def _count_shapes(self, flags: int, urls: int = 1) -> None:
        assert self._crawler.stats is not None
        for kind in kinds_of(flags >> TRAP_SHIFT):
            self._crawler.stats.inc_value(f"bigcrawl/traps/{kind}", urls)

    def _drop(self, reason: str, message: str, about: str = "") -> None:
        """Count a request that is not queued; what it is `about`, when that is the project's fault, is told once."""
        assert self._crawler.stats is not None
        self._crawler.stats.inc_value(f"bigcrawl/dropped/{reason}")
        if about:
            self._say_once(about, message)
        elif message:
            logger.debug("dropped: %(message)s", {"message": message})

    def _heed_meta(self, meta: dict[str, Any]) -> None:
        """Say once that a key of Scrapy's meta has no effect here, where its author expects one."""
        if meta.get("dont_obey_robotstxt") and self.config.politeness.obey_robots:
            self._say_once("dont_obey_robotstxt", "dont_obey_robotstxt in meta has no effect: robots.txt is obeyed")

    def _say_once(self, about: str, message: str) -> None:
        if about not in self._said:
            self._said.add(about)
            logger.error("%(message)s (said once; later ones are counted)", {"message": message})


def start_digest(spider: Spider) -> str:
    """What tells one set of start requests from another: the spider's name and its arguments."""
    arguments = {
        name: value
        for name, value in vars(spider).items()
        if isinstance(value, str | int | float | bool | list | tuple) and not name.startswith("_")
    }
    text = json.dumps([spider.name, arguments], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def code_digest(spider: Spider) -> str:
    """What tells one version of the spider's module from another; empty where its source is not there."""
    try:
        source = inspect.getsource(inspect.getmodule(type(spider)) or type(spider))
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(source.encode()).hexdigest()[:16]
