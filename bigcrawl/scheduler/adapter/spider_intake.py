from __future__ import annotations

import hashlib
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, WeakSet

from scrapy import Request

from bigcrawl.bounded import BoundedDict
from bigcrawl.exceptions import RequestNotStorableError
from bigcrawl.scheduler.adapter.request_codec import (
    ENTRY,
    NO_ORIGIN,
    ONCE,
    LinkOrigin,
    forget_origin,
    links_encoder,
    links_tail,
    not_listed,
    record_origin,
)
from bigcrawl.scheduler.adapter.tries import RetryMarks
from bigcrawl.scheduler.records.queued_url import traits_of
from bigcrawl.url.canonical import UrlError, canonicalize, host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from bigcrawl.config import Config
    from bigcrawl.links import Links
    from bigcrawl.scheduler.adapter.drops import DroppedRequests
    from bigcrawl.scheduler.adapter.live_requests import LiveRequests
    from bigcrawl.scheduler.adapter.started_requests import StartedRequests
    from bigcrawl.scheduler.handout.observers import PageLinks
    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.url.key import UrlKey

logger = logging.getLogger(__name__)

WEB: Final = frozenset({"http", "https"})
PASSED_ON_MAX: Final = 100_000


def check_methods(links: Links, live: LiveRequests) -> None:
    """Raise RequestNotStorableError unless callback and errback are methods that a message may name."""
    links.check_methods(live.spider)
    for path, name in (("callback", links.callback_name), ("errback", links.errback_name)):
        if name and not live.values.may_call(method := getattr(live.spider, name)):
            raise RequestNotStorableError(next(iter(links.urls), "(no URL)"), path, not_listed(method))


class SpiderIntake:
    def __init__(
        self,
        config: Config,
        started: StartedRequests,
        drops: DroppedRequests,
        apart: Callable[[Request], bytes] | None = None,
    ) -> None:
        """`apart` distinguishes a request from other requests for its URL; see `tries.FingerprintChoice`."""
        self._apart = apart
        self._url_bytes_max = config.frontier.url_bytes_max
        self._traits = traits_of(config)
        kept = config.frontier.link_origin
        self._notes_parents = kept != "auto" or "parquet" in config.crawl.warc_indexes  # which has a column for them
        self.notes_servers = kept == "full"
        self._started = started
        self._tries = RetryMarks(started, self._url_bytes_max, self._key_of, apart)
        self._drops = drops
        self._start_requests: WeakSet[Request] = WeakSet()
        self._pages: WeakKeyDictionary[Request, str] = WeakKeyDictionary()
        self._schemes = config.frontier.handled_schemes
        self.others_filtered = 0  # requests of other schemes that were not passed on
        self.others_forbidden = 0  # requests beside the frontier that robots.txt forbids
        self._passed_on: BoundedDict[bytes, None] = BoundedDict(PASSED_ON_MAX)
        self._node: Node | None = None
        self._live: LiveRequests | None = None

    def record_forbidden(self) -> None:
        self.others_forbidden += 1

    def attach(self, node: Node, live: LiveRequests) -> None:
        self._node, self._live = node, live

    def _key_of(self, canonical: str, method: str, body: bytes, jar: bytes) -> UrlKey:
        assert self._node is not None
        return self._node.crawl.keys.of_request(canonical, method, body, jar)

    def offer_links(
        self,
        links: Links,
        urls: Iterable[str],
        depth: int,
        page: str = "",
        *,
        starts: bool = False,
        noted_by: Iterable[PageLinks] = (),
        address: str = "",
    ) -> int:
        """Offer a batch of canonical URLs found on `page` to the outbox. Return how many were not sent recently.

        `noted_by` is what `links_of` returned for the page, and `address` that of its server; needed only if the intake
        `notes_servers`. While discovery is off, URLs are taken only if the spider `starts` with them.
        """
        node, live = self._node, self._live
        if node is None or live is None:
            return 0
        if not (starts or node.parts.control.discovers):
            self._drops.count_undiscovered(sum(1 for _ in urls))
            return 0
        if links.callback or links.errback:
            check_methods(links, live)
        origin = self._origin_on(page, address) if self._notes_parents else NO_ORIGIN
        encode = links_encoder(links, depth, self._traits, live.values, origin)
        if links.meta:
            self._drops.heed_meta(links.meta)
        urls = list(urls)
        if len(set(urls)) < len(urls):  # a page's links come once each
            urls = list(dict.fromkeys(urls))
        if starts:
            node.starts.record_seeds(urls)
        self._record_page_links(links, urls, page, noted_by)
        offered: list[QueuedUrl] = []
        shapes: dict[int, int] = {}
        keys = node.crawl.keys
        key_of = keys.of_url
        for at in node.outbox.remember_each(keys.signed_marks_of(urls)):
            url = urls[at]
            try:
                queued = encode(key_of(url), url)
            except (ValueError, IndexError):  # not a URL, although the caller passed it as canonical
                self._drops.count_dropped("url", url)
                continue
            offered.append(queued)
            if queued.flags:
                shapes[queued.flags] = shapes.get(queued.flags, 0) + 1
        node.offer_each(offered)
        for flags, alike in shapes.items():
            self._drops.count_traits(flags, alike)
        if origin != NO_ORIGIN:
            plain, whole = [len(links_tail(links, depth, live.values, each)) for each in (NO_ORIGIN, origin)]
            self._drops.count_origins(len(offered) * (whole - plain))
        return len(offered)

    def _record_page_links(self, links: Links, urls: list[str], page: str, noted_by: Iterable[PageLinks]) -> None:
        if page and self._node is not None and self._node.link_graph is not None:
            self._node.link_graph.note(page, urls)
        for noted in noted_by:
            noted.add(urls, links.priority)

    def _origin_on(self, page: str, address: str) -> LinkOrigin:
        if not self.notes_servers or self._node is None:
            return LinkOrigin(page)
        return LinkOrigin(page, self._node.parts.crawl.client.now_ms() // 1000, address)

    def refuse_links(self, links: Links, urls: Collection[str], error: RequestNotStorableError) -> None:
        self._drops.refuse_links(len(urls), str(error), f"{error.key_path} {error.kind}")
        errback = links.errback
        if isinstance(errback, str):
            errback = getattr(self._live.spider, errback, None) if self._live is not None else None
        if not callable(errback):
            return
        for url in urls:
            with suppress(ValueError, TypeError):  # no URL, or arguments without names
                request = Request(url, errback=errback, meta=links.meta, cb_kwargs=links.cb_kwargs)
                self._started.refuse(request, error)

    def record_modified(self, modified: Mapping[str, int], found_at: str) -> None:
        """Record when pages, by canonical URL, changed according to `found_at`; those of other sites are ignored."""
        node = self._node
        if node is None or not node.ownership.wants_modified or not found_at:
            return
        pld = node.crawl.pld_of(host_of(canonicalize(found_at)))
        own: list[tuple[int, int]] = []
        for url, at_s in modified.items():
            with suppress(ValueError, IndexError):  # not a URL, although the spider passed it as canonical
                if node.crawl.pld_of(host_of(url)) == pld:
                    own.append((node.crawl.keys.of_url(url), int(at_s)))
        node.ownership.record_modified(own)

    def enqueue(self, request: Request) -> bool:
        """Take a request, but count a refused one and call its errback: an exception could hang Scrapy's engine."""
        try:
            return self.take_request(request)
        except UrlError as error:
            about = f"url-{error.reason} {request.url.partition(':')[0][:30]}"
            self._drops.count_dropped(f"url-{error.reason}", str(error), about, is_fault=False)
            self._started.refuse(request, error)
        except RequestNotStorableError as error:
            self._drops.count_dropped("not-storable", str(error), about=f"{error.key_path} {error.kind}")
            self._started.refuse(request, error)
        except Exception as error:
            logger.exception("a request could not be queued: %(request)s", {"request": request})
            self._drops.count_dropped("error", "")
            self._started.refuse(request, error)
        return False

    def take_request(self, request: Request) -> bool:
        """Take a request from the engine: a link, a start request, or the next try of a URL in process.

        False if it is not queued: the node has not joined, the URL was sent recently, or it is a link, and discovery is
        off.

        Raises:
            UrlError: it has no http(s) URL, or one that is too long.
            RequestNotStorableError: one of its values cannot be stored.
        """
        node, live = self._node, self._live
        if node is None or live is None:
            return False
        is_start = request in self._start_requests
        self._start_requests.discard(request)
        meta = request._meta or {}
        if not request.url.startswith("http") and self._is_handled(request, meta, is_start=is_start):
            return self._pass_on(request, is_start=is_start, discovers=node.parts.control.discovers)
        held = self._tries.tried_again(request, meta)
        if held is not None:
            self._tries.try_again(held, request, live, node.handout)
            return True
        origin = self._tries.redirected_from(meta)
        is_redirect = origin is not None
        before = origin or self._started.held_of(request)  # a middleware may return the very request that it was given
        if meta and before is None:  # the meta of a fetch holds Scrapy's own slot
            self._drops.heed_meta(meta)
        if not (is_start or is_redirect or node.parts.control.discovers):
            self._drops.count_undiscovered(1)
            return False
        checked = is_start or not request.dont_filter or is_redirect or meta.get(ONCE) is not None
        jar = self._jar_of(request, meta, is_start=is_start, is_redirect=is_redirect)
        if self._apart is not None and (apart := self._apart(request)):
            jar = [jar, apart]
        url, canonical = live.encode(
            request,
            before.fields.body if before is not None else None,
            key_of=node.crawl.keys.of_request,
            checked=checked,
            url_bytes_max=self._url_bytes_max,
            traits=self._traits,
            jar=jar,
        )
        if is_start:
            node.starts.record_seeds((canonical,))
        is_plain = request.method == "GET" and not request.body and jar is None
        if node.link_graph is not None and (page := self._pages.pop(request, "")):
            node.link_graph.note(page, (canonical,))
        if checked and not node.outbox.remember(node.crawl.keys.mark_of(canonical) if is_plain else url.key):
            return False
        node.offer(url)
        if url.flags:
            self._drops.count_traits(url.flags)
        return True

    def _is_handled(self, request: Request, meta: dict[str, Any], *, is_start: bool) -> bool:
        """Whether a request goes to its scheme's download handler; a link only if a setting names the scheme."""
        scheme = request.url.partition(":")[0].lower()
        if scheme == "data" or scheme in self._schemes:
            return True
        if is_start:
            return scheme not in WEB and ENTRY not in meta  # a list may hold links of other crawlers
        return bool(meta.get("retry_times")) and _url_digest(request.url) in self._passed_on

    def _pass_on(self, request: Request, *, is_start: bool, discovers: bool) -> bool:
        """Pass a request of another scheme straight to the engine: it has no host, queue or rules."""
        if not (is_start or discovers):
            self._drops.count_undiscovered(1)
            return False
        digest = _url_digest(request.url)
        if not request.dont_filter and digest in self._passed_on:
            self.others_filtered += 1
            return False
        self._passed_on.remember(digest, None)
        self._started.pass_on(request)
        return True

    def _jar_of(self, request: Request, meta: dict[str, Any], *, is_start: bool, is_redirect: bool) -> object:
        """Return the value that distinguishes a request from others to the same URL, for instance its value of `ONCE`.

        For a start request, or its redirect, it may be its entry or its cookie jar. An entry whose request has
        `dont_filter` is fetched even if its URL was seen, but only once, even if the entry is read twice.
        """
        if (once := meta.get(ONCE)) is not None:
            return once
        jar = (meta.get(ENTRY) if request.dont_filter else None) or meta.get("cookiejar")
        if jar is None or is_start or (is_redirect and self._tries.is_redirect_in_jar(meta, jar)):
            return jar
        return None

    def record_start_request(self, request: Request) -> None:
        self._start_requests.add(request)

    def record_found(
        self, request: Request, page: str, noted_by: Collection[PageLinks] = (), address: str = ""
    ) -> None:
        """Mark a request as found by a callback on `page`: when it is enqueued, it counts as a link of that page."""
        if request._meta:
            forget_origin(request._meta)
        if self.notes_servers:
            record_origin(request.meta, self._origin_on(page, address))
        if self._node is not None and self._node.link_graph is not None:
            self._pages[request] = page
        if noted_by and request.method == "GET" and not request.body and type(request.priority) is int:
            with suppress(UrlError):  # its encoder reports it
                urls = (canonicalize(request.url, self._url_bytes_max),)
                for noted in noted_by:
                    noted.add(urls, request.priority)

    def links_of(self, request: Request | None) -> Collection[PageLinks]:
        held = self._started.held_of(request)
        return () if held is None or self._node is None else self._node.observers.links_of(held)


def _url_digest(url: str) -> bytes:
    return hashlib.sha1(url.encode(errors="surrogatepass"), usedforsecurity=False).digest()
