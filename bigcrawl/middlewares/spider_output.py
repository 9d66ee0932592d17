"""What the engine's scraper does for each page, at less cost. It uses Scrapy's public names only.

Scrapy gives each page two tasks and a queue for its output, also if there is none: links go to the frontier in a
middleware, and few pages have items. Here a page gets them with its first output.

Each of Scrapy's spider middlewares looks at every page whether it was given a deprecated argument. It is not, so the
methods behind these looks are called.
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
    """Do so, before the crawler has its first page. Without an engine there is nothing to do."""
    try:
        scraper: Scraper = crawler.engine.scraper
    except (RuntimeError, AttributeError):
        return
    handle = scraper.handle_spider_output_async

    async def handle_output(result: Any, request: Request, response: Response | Failure) -> None:
        if isinstance(result, AsyncIterator):
            first = await _first(result, scraper, request, response)
            if first is None:
                return
            result = first
        await handle(result, request, response)

    scraper.handle_spider_output_async = handle_output  # type: ignore[method-assign]
    methods = scraper.spidermw.methods["process_spider_output"]
    for at, method in enumerate(methods):
        methods[at] = method and without_look(method)


async def _first(
    result: AsyncIterator[Any], scraper: Scraper, request: Request, response: Response | Failure
) -> _Resumed | None:
    """Wait for the first output; None if there is none. Scrapy handles errors before it, and more may follow them."""
    while True:
        try:
            return _Resumed(await anext(result), result)
        except StopAsyncIteration:
            return None
        except Exception:  # noqa: BLE001 - a callback's
            scraper.handle_spider_error(Failure(), request, response)  # type: ignore[no-untyped-call]


class _Resumed:
    """An iterator from which one output was taken: that one first, then the others."""

    def __init__(self, first: Any, others: AsyncIterator[Any]) -> None:
        self._first = [first]
        self._others = others

    def __aiter__(self) -> _Resumed:
        return self

    def __anext__(self) -> Coroutine[Any, Any, Any]:
        return self._next()

    async def _next(self) -> Any:
        return self._first.pop() if self._first else await anext(self._others)
