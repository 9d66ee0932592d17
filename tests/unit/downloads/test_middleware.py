"""The chain of downloader middlewares, held to what Scrapy's own manager does with the same ones."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest, ScrapyDeprecationWarning, _InvalidOutput
from scrapy.http import Response
from twisted.internet import defer

from bigcrawl.downloads.middleware import MiddlewareChain
from bigcrawl.middlewares.compression import CompressionMiddleware
from tests.unit.downloads.crawlers import new_crawler

if TYPE_CHECKING:
    from collections.abc import Callable

URL = "http://a.example/"
LOG: list[str] = []  # what ran, in its order

pytestmark = pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")


def told(name: str, request: Request, method: str, otherwise: Response | None = None) -> Any:
    """Note a call; what the request's meta wants to come of it, or what comes of it otherwise."""
    LOG.append(f"{name} {method}")
    wanted = request.meta.get(f"{name} {method}", otherwise)
    if isinstance(wanted, Exception):
        raise wanted
    return wanted


class Sync:
    """A middleware of plain functions."""

    def process_request(self, request: Request) -> Any:
        return told("sync", request, "request")

    def process_response(self, request: Request, response: Response) -> Any:
        return told("sync", request, "response", response)

    def process_exception(self, request: Request, exception: Exception) -> Any:
        return told("sync", request, "exception")


class Async:
    """A middleware of coroutines that wait, and that want the spider."""

    async def process_request(self, request: Request, spider: Any) -> Any:
        await asyncio.sleep(0)
        assert spider.name == "downloads"
        return told("async", request, "request")

    async def process_response(self, request: Request, response: Response, spider: Any) -> Any:
        await asyncio.sleep(0)
        assert spider.name == "downloads"
        return told("async", request, "response", response)

    async def process_exception(self, request: Request, exception: Exception, spider: Any = None) -> Any:
        await asyncio.sleep(0)
        assert spider is None, "one that has a default is not given the spider"
        return told("async", request, "exception")


class Deferring:
    """A middleware of Deferreds: fired, failed, and fired later."""

    def process_request(self, request: Request) -> Any:
        return defer.execute(told, "deferring", request, "request")

    def process_response(self, request: Request, response: Response) -> Any:
        later: defer.Deferred[Any] = defer.Deferred()
        asyncio.get_running_loop().call_soon(later.callback, told("deferring", request, "response", response))
        return later

    def process_exception(self, request: Request, exception: Exception) -> Any:
        return defer.execute(told, "deferring", request, "exception")


class Half:
    """A middleware with one method, that is static."""

    @staticmethod
    def process_response(request: Request, response: Response) -> Any:
        return told("half", request, "response", response)


def new_manager() -> DownloaderMiddlewareManager:
    order = {Deferring: 30, Sync: 10, Half: 40, Async: 20}
    crawler = new_crawler(DOWNLOADER_MIDDLEWARES_BASE={}, DOWNLOADER_MIDDLEWARES=order)
    return DownloaderMiddlewareManager.from_crawler(crawler)


async def download(request: Request) -> Response:
    LOG.append("download")
    failure = request.meta.get("download")
    if failure is not None:
        raise failure
    return Response(request.url, body=b"downloaded")


def outcome(run: Callable[..., Any], meta: dict[str, Any]) -> tuple[Any, list[str]]:
    """What came of a request, and what ran on the way."""
    LOG.clear()
    try:
        result = asyncio.run(run(download, Request(URL, meta=meta)))
    except Exception as error:  # noqa: BLE001 - whatever it is, both sides must raise it
        # Scrapy itself names what it got in two ways.
        return (type(error), str(error).partition(", got ")[0]), list(LOG)
    return (type(result), result.body if isinstance(result, Response) else result.url), list(LOG)


NAMES = ("sync", "async", "deferring", "half")
OUTCOMES = (Response(URL + "own", body=b"own"), Request(URL + "again"), IgnoreRequest("no"), LookupError("x"), 0, "", 7)
PLACES = [
    f"{name} {method}"
    for name in NAMES
    for method in ("request", "response", "exception")
    if name != "half" or method == "response"
]


@pytest.mark.parametrize("what", OUTCOMES, ids=lambda what: f"{type(what).__name__}-{what}")
@pytest.mark.parametrize("place", PLACES)
def test_what_a_method_returns_or_raises_has_scrapys_effect(place: str, what: Any) -> None:
    """The same calls in the same order, the same result, the same error with the method's name in it."""
    meta = {place: what}
    if place.endswith("exception"):
        meta["download"] = ValueError("download failed")
    manager = new_manager()
    wanted = outcome(manager.download_async, meta)
    assert outcome(MiddlewareChain(manager).run, meta) == wanted
    assert place in wanted[1]


def test_methods_run_in_their_order_and_back() -> None:
    """Requests go down the chain, responses and errors up."""
    down = ["sync request", "async request", "deferring request", "download"]
    chain = MiddlewareChain(new_manager())
    assert outcome(chain.run, {}) == (
        (Response, b"downloaded"),
        [*down, "half response", "deferring response", "async response", "sync response"],
    )
    failed = {"download": ValueError("gone"), "sync exception": Response(URL, body=b"saved")}
    (result, ran) = outcome(chain.run, failed)
    assert result == (Response, b"saved")
    up = ["deferring exception", "async exception", "sync exception"]
    assert ran == [*down, *up, "half response", "deferring response", "async response", "sync response"]


@pytest.mark.parametrize(
    ("place", "qualified"),
    [
        ("sync request", "Sync.process_request"),
        ("async request", "Async.process_request"),
        ("async response", "Async.process_response"),
        ("deferring request", "Deferring.process_request"),
        ("half response", "Half.process_response"),
    ],
)
def test_error_for_a_wrong_output_names_the_method(place: str, qualified: str) -> None:
    """Also that of a method which is given the spider."""
    (kind, message), _ = outcome(MiddlewareChain(new_manager()).run, {place: 7})
    assert kind is _InvalidOutput
    assert message.startswith(f"Middleware {qualified} must return ")


def test_deferred_is_deprecated_by_name() -> None:
    """As in Scrapy, with the name of the method that returned it."""
    name = f"{__name__}.Deferring.process_request returned a Deferred"
    with pytest.warns(ScrapyDeprecationWarning, match=name):
        outcome(MiddlewareChain(new_manager()).run, {})


def test_request_handled_while_another_waits_is_not_mixed_up_with_it() -> None:
    """Many run through the one chain at a time; each gets its own response."""
    chain = MiddlewareChain(new_manager())
    gates = [asyncio.Event() for _ in range(5)]

    async def slow(request: Request) -> Response:
        number = int(request.url[-1])
        await gates[number].wait()
        if number:
            gates[number - 1].set()
        return Response(request.url)

    async def whole() -> list[str]:
        work = [asyncio.ensure_future(chain.run(slow, Request(f"{URL}{n}"))) for n in range(5)]
        gates[4].set()
        return [(await one).url for one in work]

    assert asyncio.run(whole()) == [f"{URL}{n}" for n in range(5)]


@pytest.mark.parametrize("agent", ["bot/1.0", "böt/1.0"])
@pytest.mark.parametrize(
    "given", [{}, {"headers": {"accept": "text/*", "X-Own": "1"}}, {"encoding": "latin-1", "headers": {"TE": "gzip"}}]
)
def test_headers_that_scrapys_middlewares_add_are_added(agent: str, given: dict[str, Any]) -> None:
    """Under the same names, in the same order, in the request's encoding, and each request has its own."""
    crawler = new_crawler(
        USER_AGENT=agent,
        DOWNLOADER_MIDDLEWARES={HttpCompressionMiddleware: None, CompressionMiddleware: 590, Sync: 450},
    )
    manager = DownloaderMiddlewareManager.from_crawler(crawler)
    chain = MiddlewareChain(manager)
    requests = [Request(URL, **given) for _ in range(3)]
    asyncio.run(manager.download_async(download, requests[0]))
    asyncio.run(chain.run(download, requests[1]))
    requests[1].headers.appendlist("Accept", "text/plain")
    asyncio.run(chain.run(download, requests[2]))
    assert len(requests[0].headers) >= 4
    assert list(dict.items(requests[2].headers)) == list(dict.items(requests[0].headers))


def test_cancelled_request_meets_no_exception_middleware() -> None:
    """A fetch that is given up is no error for a middleware to mend."""

    async def cancelled(request: Request) -> Response:
        raise asyncio.CancelledError

    async def whole() -> None:
        with pytest.raises(asyncio.CancelledError):
            await MiddlewareChain(new_manager()).run(cancelled, Request(URL))

    LOG.clear()
    asyncio.run(whole())
    assert not [line for line in LOG if line.endswith("exception")]
