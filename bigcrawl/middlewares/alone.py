"""What the parts that work without the frontier share: when they step aside, and how they find each other.

A part that has no place in a crawl must do no harm there. With the add-on the frontier does its work, so it is off,
and a second one of its kind is off as well; without the asyncio reactor it cannot work, and a politeness that is
silently missing would be worse than no crawl.
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

_URL_BYTES_MAX = 1 << 20  # how long a URL may be is Scrapy's business here

_there: WeakKeyDictionary[Crawler, set[str]] = WeakKeyDictionary()
_throttles: WeakKeyDictionary[Crawler, ref[Throttle]] = WeakKeyDictionary()


class Throttle(Protocol):
    """The part that keeps hosts and servers apart, as the others ask it; `throttle.ThrottleMiddleware`."""

    @property
    def connections(self) -> int:
        """How many fetches of one host may run at a time."""

    def now_ms(self) -> int:
        """The clock of `due_ms`."""

    def due_ms(self, host: str) -> int | None:
        """From when on a request of the host would not have to wait; None while the host is busy."""

    def ask_delay(self, host: str, crawl_delay_ms: int | None) -> None:
        """Keep the Crawl-delay of a host's robots.txt from now on."""

    def rest_until(self, host: str, due_ms: int) -> None:
        """Let a host rest at least until then, on the boot clock."""


def claim_place(crawler: Crawler, part: str, instead: str) -> None:
    """Take the crawler's one place for a part.

    Args:
        crawler: whose part it is.
        part: its name, as users know it.
        instead: what does its work where the frontier is.

    Raises:
        NotConfigured: the frontier is there, or another one of the same part.
        ConfigError: there is no asyncio reactor.
    """
    if has_frontier(crawler):
        raise NotConfigured(f"with bigcrawl's add-on {instead}")
    if part in _there.setdefault(crawler, set()):
        raise NotConfigured(f"there is another {part}, and one is enough")
    if not is_asyncio_available():
        raise ConfigError(
            f"{part} needs the asyncio reactor; leave TWISTED_REACTOR as it is, or set it to "
            "'twisted.internet.asyncioreactor.AsyncioSelectorReactor'"
        )
    _there[crawler].add(part)


def has_frontier(crawler: Crawler) -> bool:
    """Whether the crawler's requests go to bigcrawl's scheduler."""
    from bigcrawl.scheduler.scheduler import Scheduler

    # Not issubclass: Scrapy's schedulers take everything for one that has the same methods.
    return Scheduler in load_object(crawler.settings["SCHEDULER"]).__mro__


def register_throttle(crawler: Crawler, throttle: Throttle) -> None:
    """Make `throttle` the one that the crawler's other parts talk to."""
    _throttles[crawler] = ref(throttle)


def throttle_of(crawler: Crawler) -> Throttle | None:
    """The crawler's throttle; None when it has none."""
    found = _throttles.get(crawler)
    return found() if found else None


def canonical_of(url: str) -> str | None:
    """The canonical form of a request's URL; None for one that is not http or https.

    Raises:
        UrlError: its host or port cannot be read.
    """
    try:
        return canonicalize(url, _URL_BYTES_MAX)
    except UrlError as error:
        if error.reason == "scheme":
            return None
        raise


def host_of_url(url: str) -> str | None:
    """The host a request is for; None where there is nothing to be polite to."""
    try:
        canonical = canonical_of(url)
    except UrlError:
        return None
    return None if canonical is None else host_of(canonical)


class PutBack:
    """Requests that wait for their host when the crawl is stopped: back to the scheduler, which may keep them."""

    def __init__(self, crawler: Crawler) -> None:
        self._probe = EngineProbe(crawler)
        self._given: WeakSet[Request] = WeakSet()

    def is_closing(self) -> bool:
        """Whether the spider is being closed: nobody must wait any longer."""
        return self._probe.is_closing()

    def put_back(self, request: Request) -> Request:
        """Return what a downloader middleware returns so that the scheduler gets the request again.

        Raises:
            FetchAbortedError: it did not come from the scheduler (`engine.download_async`).
        """
        if request.callback is NO_CALLBACK or request in self._given:
            raise FetchAbortedError(f"{request.url} is not fetched: the crawl stops")
        again = request.replace(dont_filter=True)
        self._given.add(again)
        return again
