"""Code shared by the parts that work without the frontier.

Without the asyncio reactor these parts fail to start, because a crawl without politeness would be worse than none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary, WeakSet, ref

from scrapy.exceptions import NotConfigured
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.misc import load_object

from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.adapter.engine_probe import EngineProbe
from bigcrawl.scheduler.adapter.fetch_errors import FetchAbortedError
from bigcrawl.url.canonical import UrlError, canonicalize, host_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

_URL_BYTES_MAX = 1 << 20  # here Scrapy decides how long a URL may be

_there: WeakKeyDictionary[Crawler, set[str]] = WeakKeyDictionary()
_throttles: WeakKeyDictionary[Crawler, ref[Throttle]] = WeakKeyDictionary()


class Throttle(Protocol):
    @property
    def connections(self) -> int: ...

    def now_ms(self) -> int: ...

    def due_ms(self, host: str) -> int | None:
        """Return when the host is due; None while it is busy."""

    def ask_delay(self, host: str, crawl_delay_ms: int | None) -> None: ...

    def rest_until(self, host: str, due_ms: int) -> None:
        """Let a host rest at least until `due_ms` of the boot clock."""


def claim_place(crawler: Crawler, part: str, instead: str) -> None:
    """Register a part as the crawler's only one of its kind; `instead` says how the frontier replaces it.

    Raises:
        NotConfigured: the frontier is active, or the crawler has a part of this kind already.
        ConfigError: there is no asyncio reactor.
    """
    if has_frontier(crawler):
        raise NotConfigured(f"bigcrawl's add-on is in use, so {instead}")
    if part in _there.setdefault(crawler, set()):
        raise NotConfigured(f"there is another {part}, so this one is disabled")
    if not is_asyncio_available():
        raise ConfigError(
            f"{part} needs the asyncio reactor; leave TWISTED_REACTOR as it is, or set it to "
            "'twisted.internet.asyncioreactor.AsyncioSelectorReactor'"
        )
    _there[crawler].add(part)


def has_frontier(crawler: Crawler) -> bool:
    from bigcrawl.scheduler.scheduler import Scheduler

    # Not issubclass: Scrapy's base scheduler accepts any class with the same methods.
    return Scheduler in load_object(crawler.settings["SCHEDULER"]).__mro__


def register_throttle(crawler: Crawler, throttle: Throttle) -> None:
    _throttles[crawler] = ref(throttle)


def throttle_of(crawler: Crawler) -> Throttle | None:
    found = _throttles.get(crawler)
    return found() if found else None


def canonical_of(url: str) -> str | None:
    """Return the canonical form of a URL; None if it is not http or https. Raises UrlError."""
    try:
        return canonicalize(url, _URL_BYTES_MAX)
    except UrlError as error:
        if error.reason == "scheme":
            return None
        raise


def host_of_url(url: str) -> str | None:
    try:
        canonical = canonical_of(url)
    except UrlError:
        return None
    return None if canonical is None else host_of(canonical)


class PutBack:
    def __init__(self, crawler: Crawler) -> None:
        self._probe = EngineProbe(crawler)
        self._given: WeakSet[Request] = WeakSet()

    def is_closing(self) -> bool:
        return self._probe.is_closing()

    def put_back(self, request: Request) -> Request:
        """Return the request in the form that makes Scrapy queue it again.

        Raises FetchAbortedError if the request did not come from the scheduler, but from `engine.download_async`.
        """
        if request.callback is NO_CALLBACK or request in self._given:
            raise FetchAbortedError(f"{request.url} is not fetched: the crawl stops")
        again = request.replace(dont_filter=True)
        self._given.add(again)
        return again
