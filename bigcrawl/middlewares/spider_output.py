"""Does what the engine's scraper does for each page, at less cost. It uses only public names of Scrapy.

Scrapy makes two tasks and a queue for each page's output, even if there is none: a middleware passes links to the
frontier, and few pages have items. Here they are made only with a page's first output.

Each of Scrapy's spider middlewares checks at every page whether it was given a deprecated argument. It never is here,
so the methods that these checks wrap are called directly. Its middlewares that change only Requests see nothing of a
page's output before its first Request. A callback that yields its output is called at once, where Scrapy waits for two
turns of the event loop and looks for a `return` in the callback's source.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request, Spider
from scrapy.spidermiddlewares.depth import DepthMiddleware
from scrapy.spidermiddlewares.httperror import HttpErrorMiddleware
from scrapy.spidermiddlewares.referer import RefererMiddleware
from scrapy.spidermiddlewares.start import StartSpiderMiddleware
from scrapy.spidermiddlewares.urllength import UrlLengthMiddleware
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.deprecate import argument_is_required
from scrapy.utils.misc import warn_on_generator_with_return_value
from scrapy.utils.python import MutableAsyncChain
from scrapy.utils.spider import iterate_spider_output
from twisted.python.failure import Failure

from bigcrawl.downloads.middleware import without_look

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from scrapy.core.scraper import Scraper
    from scrapy.core.spidermw import SpiderMiddlewareManager
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    OutputMethod = Callable[..., AsyncIterator[Any]]

_FOR_REQUESTS: Final = (DepthMiddleware, RefererMiddleware, StartSpiderMiddleware, UrlLengthMiddleware)
_CALLBACKS_REMEMBERED: Final = 64
_PARSE: Final = getattr(Spider, "_parse", None)  # calls `parse`; Scrapy's own spiders may do more


def simplify_output(crawler: Crawler) -> None:
    """Replace the scraper's method, before the crawler has its first page. Without an engine, do nothing."""
    try:
        scraper: Scraper = crawler.engine.scraper
    except (RuntimeError, AttributeError):
        return
    handle = scraper.handle_spider_output_async

    async def handle_output(result: Any, request: Request, response: Response | Failure) -> None:
        if isinstance(result, AsyncIterator):
            first = await _resume_after_first(result, scraper, request, response)
            if first is None:
                return
            result = first
        await handle(result, request, response)

    scraper.handle_spider_output_async = handle_output  # type: ignore[method-assign]
    methods = scraper.spidermw.methods
    methods["process_spider_output"] = _joined(
        [method and without_look(method) for method in methods["process_spider_output"]]
    )
    scraper.call_spider_async = _direct_call(scraper, crawler)  # type: ignore[method-assign]
    if _is_plain(scraper.spidermw):
        scraper.spidermw.scrape_response_async = _direct_scrape(scraper.spidermw)  # type: ignore[method-assign, assignment]


def _direct_call(scraper: Scraper, crawler: Crawler) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return a replacement for the scraper's method that at once calls a callback that is a generator."""
    call = scraper.call_spider_async

    @lru_cache(_CALLBACKS_REMEMBERED)
    def is_generator(callback: Callable[..., Any]) -> bool:
        assert crawler.spider is not None
        warn_on_generator_with_return_value(crawler.spider, callback)
        return inspect.isasyncgenfunction(callback) or inspect.isgeneratorfunction(callback)

    async def call_callback(result: Response | Failure, request: Request) -> Any:
        if isinstance(result, Failure) or result.request is None:
            return await call(result, request)
        callback, spider = result.request.callback, crawler.spider
        if callback is None and getattr(type(spider), "_parse", None) is _PARSE:
            callback = getattr(spider, "parse", None)
        if not (inspect.ismethod(callback) and is_generator(callback)):
            return await call(result, request)
        return iterate_spider_output(callback(result, **result.request.cb_kwargs))

    return call_callback


def _is_plain(manager: SpiderMiddlewareManager) -> bool:
    """Return whether no middleware but `HttpErrorMiddleware` handles output errors or wants the spider."""
    handlers = filter(None, manager.methods["process_spider_exception"])
    outputs = filter(None, manager.methods["process_spider_output"])
    return all(type(getattr(method, "__self__", None)) is HttpErrorMiddleware for method in handlers) and not any(
        argument_is_required(method, "spider") for method in outputs
    )


def _direct_scrape(manager: SpiderMiddlewareManager) -> Callable[..., Coroutine[Any, Any, AsyncIterator[Any]]]:
    """Return a replacement for the scraping method of a plain manager, which expects errors at each middleware.

    `HttpErrorMiddleware` handles only an error of the callback, and without output.
    """
    methods = [method for method in manager.methods["process_spider_output"] if method is not None]

    async def scrape_response(call: Callable[..., Any], response: Response, request: Request) -> AsyncIterator[Any]:
        try:
            output = await manager._process_spider_input(call, response, request)
            result = output if isinstance(output, AsyncIterator) else as_async_generator(output)
        except Exception as error:  # noqa: BLE001 - of the callback or a middleware
            return manager._process_spider_exception(response, error)
        result = manager._evaluate_iterable(response, result, 0, MutableAsyncChain())
        for method in methods:
            result = method(response=response, result=result)
        return result

    return scrape_response


def _joined(methods: Iterable[OutputMethod | None]) -> deque[OutputMethod | None]:
    """Merge adjacent methods of middlewares that change only Requests into one, at the place of the last of them."""
    joined: deque[OutputMethod | None] = deque()
    run: list[OutputMethod] = []
    for method in methods:
        if method is None or type(getattr(method, "__self__", None)) not in _FOR_REQUESTS:
            run = []
            joined.append(method)
            continue
        if run:
            joined[-1] = None
        run = [*run, method]
        joined.append(_for_requests(run))
    return joined


def _for_requests(methods: list[OutputMethod]) -> OutputMethod:
    def through_all(response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        for method in methods:
            result = method(response=response, result=result)
        return result

    async def process_spider_output(response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        if "depth" not in response.meta:  # the first method sets it before the callback runs
            async for output in through_all(response, result):
                yield output
            return
        async for output in result:
            if isinstance(output, Request):
                async for each in through_all(response, _ResumedOutput(output, result)):
                    yield each
                return
            if output is not None:
                yield output

    return process_spider_output


async def _resume_after_first(
    result: AsyncIterator[Any], scraper: Scraper, request: Request, response: Response | Failure
) -> _ResumedOutput | None:
    """Wait for the first output; return None if there is none. Scrapy handles any errors that come before it."""
    while True:
        try:
            return _ResumedOutput(await anext(result), result)
        except StopAsyncIteration:
            return None
        except Exception:  # noqa: BLE001 - a callback's
            scraper.handle_spider_error(Failure(), request, response)  # type: ignore[no-untyped-call]


class _ResumedOutput:
    """Iterates over the output of an iterator from which the first output was already taken."""

    def __init__(self, first: Any, others: AsyncIterator[Any]) -> None:
        self._first = [first]
        self._others = others

    def __aiter__(self) -> _ResumedOutput:
        return self

    def __anext__(self) -> Coroutine[Any, Any, Any]:
        return self._next()

    async def _next(self) -> Any:
        return self._first.pop() if self._first else await anext(self._others)
