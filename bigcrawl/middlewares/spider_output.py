"""Does what the engine's scraper does for each page, at less cost. It uses only public names of Scrapy.

Scrapy makes two tasks and a queue for each page's output, even if there is none: a middleware passes links to the
frontier, and few pages have items. Here they are made only with a page's first output.

Each of Scrapy's spider middlewares checks at every page whether it was given a deprecated argument. It never is here,
so the methods that these checks wrap are called directly.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from twisted.python.failure import Failure

from bigcrawl.downloads.middleware import without_look

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from scrapy import Request
    from scrapy.core.scraper import Scraper
    from scrapy.crawler import Crawler
    from scrapy.http import Response


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
    methods = scraper.spidermw.methods["process_spider_output"]
    for at, method in enumerate(methods):
        methods[at] = method and without_look(method)


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
