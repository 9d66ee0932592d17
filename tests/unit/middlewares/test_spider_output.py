"""A page's output, held to what Scrapy's own scraper does with the same callback."""

from __future__ import annotations

import asyncio
from types import MethodType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, signals
from scrapy.core.scraper import Scraper
from scrapy.http import TextResponse
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.decorators import inthread
from scrapy.utils.defer import maybe_deferred_to_future

from bigcrawl.downloads.middleware import without_look
from bigcrawl.middlewares.spider_output import simplify_output
from tests.unit.downloads.crawlers import new_crawler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

URL = "http://a.example/"


class Eater:
    """The outermost middleware. Like links, part of the output goes elsewhere. It may fail, and heals a LookupError."""

    async def process_spider_output(self, response: Any, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for output in result:
            if output == "fails":
                raise ValueError("eater")
            if output != "eaten":
                yield output

    def process_spider_exception(self, response: Any, exception: Exception) -> Any:
        return [{"healed": True}] if isinstance(exception, LookupError) else None


class Helpless(Eater):
    process_spider_exception = None  # type: ignore[assignment]


class Old(Helpless):
    """It wants the spider."""

    async def process_spider_output(  # type: ignore[override]
        self, response: Any, result: AsyncIterator[Any], spider: Any
    ) -> AsyncIterator[Any]:
        assert spider.name == "downloads"
        async for output in super().process_spider_output(response, result):
            yield output


def none(spider: Any, response: Any) -> None:
    pass


def eaten(spider: Any, response: Any) -> list[str]:
    return ["eaten"]


def takes_what_is_none(spider: Any, response: Any) -> Iterator[Any]:
    yield from (None, {"a": 1}, None, Request(URL + "x" * 3_000), Request(URL + "next"), None)


def returns(spider: Any, response: Any) -> Any:
    yield {"a": 1}
    return 1


def refuses(spider: Any, response: Any) -> Iterator[Any]:
    yield {"a": 1}
    raise HttpError(response)


def mixed(spider: Any, response: Any) -> Iterator[Any]:
    yield from ("eaten", {"a": 1}, Request(URL + "next"), {"b": 2}, "eaten")


def broken(spider: Any, response: Any) -> Iterator[Any]:
    yield {"a": 1}
    raise ValueError("broken")


def broken_at_once(spider: Any, response: Any) -> Iterator[Any]:
    yield from (1 // 0 for _ in "a")


def healed(spider: Any, response: Any) -> Iterator[Any]:
    yield from map("0".__getitem__, [1])


def fails_outside(spider: Any, response: Any) -> list[Any]:
    return ["fails", {"a": 1}]


async def asynchronous(spider: Any, response: Any) -> AsyncIterator[Any]:
    yield {"a": 1}
    await asyncio.sleep(0)
    yield "eaten"


CALLBACKS = (
    none,
    eaten,
    takes_what_is_none,
    returns,
    refuses,
    mixed,
    broken,
    broken_at_once,
    healed,
    fails_outside,
    asynchronous,
)


async def outcome(
    callback: Callable[..., Any], depth: int | None, eater: type, status: int = 200, *, simplified: bool
) -> list[Any]:
    """What a page comes to: items, requests and errors in their order, the page's depth, and the scraper's rest."""
    crawler = new_crawler(SPIDER_MIDDLEWARES={eater: 10}, CONCURRENT_ITEMS=1)
    seen: list[Any] = []
    scraper = Scraper(crawler)
    crawl = lambda request: seen.append(("request", request.url, request.meta["depth"]))  # noqa: E731
    crawler.engine = SimpleNamespace(scraper=scraper, crawl=crawl)  # type: ignore[assignment]

    def record_item(item: Any) -> None:
        seen.append(("item", item))

    def record_error(failure: Any) -> None:
        seen.append(("error", repr(failure.value)))

    crawler.signals.connect(record_item, signals.item_scraped)
    crawler.signals.connect(record_error, signals.spider_error)
    if simplified:
        simplify_output(crawler)
    await scraper.open_spider_async()
    request = Request(
        URL, callback=MethodType(callback, crawler.spider), meta={} if depth is None else {"depth": depth}
    )
    response = TextResponse(URL, status, request=request, body=b"")
    await maybe_deferred_to_future(scraper.enqueue_scrape(response, request))
    assert scraper.slot is not None
    return [*seen, response.meta.get("depth"), scraper.slot.is_idle(), scraper.slot.active_size]


@pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")
@pytest.mark.parametrize("eater", [Eater, Helpless, Old])
@pytest.mark.parametrize("depth", [None, 3])
@pytest.mark.parametrize("callback", CALLBACKS, ids=lambda callback: callback.__name__)
def test_a_page_comes_to_what_scrapy_makes_of_it(callback: Callable[..., Any], depth: int | None, eater: type) -> None:
    wanted = asyncio.run(outcome(callback, depth, eater, simplified=False))
    assert asyncio.run(outcome(callback, depth, eater, simplified=True)) == wanted


@pytest.mark.parametrize("eater", [Eater, Helpless])
def test_a_page_with_a_status_that_nobody_wants_meets_no_callback(eater: type) -> None:
    wanted = asyncio.run(outcome(mixed, 3, eater, 404, simplified=False))
    assert asyncio.run(outcome(mixed, 3, eater, 404, simplified=True)) == wanted
    assert len(wanted) == 3


def test_only_scrapys_look_for_a_spider_is_passed_by() -> None:
    class Threaded:
        @inthread
        def process_request(self, request: Request) -> None:
            pass

    threaded = Threaded().process_request
    assert without_look(threaded) is threaded
    (depth,) = [
        each for each in Scraper(new_crawler()).spidermw.middlewares if type(each).__name__ == "DepthMiddleware"
    ]
    assert without_look(depth.process_spider_output_async) != depth.process_spider_output_async


def test_without_an_engine_there_is_nothing_to_do() -> None:
    simplify_output(new_crawler())
