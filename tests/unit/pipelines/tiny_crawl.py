"""Crawl the URLs of a JSON command line with Scrapy's own scheduler and the WARC pipeline; report in JSON.

``room``: bytes a file may have; ``when_stuck``: then "give room" or "close".
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from typing import TYPE_CHECKING, Any, ClassVar, cast

import scrapy
from scrapy import signals
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import AsyncCrawlerProcess, Crawler
from scrapy.utils.asyncio import call_later

from bigcrawl.pipelines import warc
from bigcrawl.pipelines.warc import WarcPipeline
from bigcrawl.scheduler.adapter.registry import notes_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


class QuickPipeline(WarcPipeline):
    """Tries again soon, so that tests need not wait."""

    def __init__(self, crawler: Crawler, directory: Path) -> None:
        super().__init__(crawler, directory, retry_seconds=0.02)


class TinySpider(scrapy.Spider):
    name = "tiny"
    urls: list[list[Any]]
    copies: ClassVar[dict[str, str]] = {}

    async def start(self) -> AsyncIterator[scrapy.Request]:
        for method, url, body in self.urls:
            yield scrapy.Request(url, method=method, body=body, dont_filter=True)

    def parse(self, response: scrapy.http.Response) -> Iterator[dict[str, str]]:
        storage = notes_of(self.crawler)
        original = storage.original_of(response.request) if storage and response.request else ""
        if original:
            self.copies[response.url] = original
        yield {"url": response.url}


def act_when_stuck(crawler: Crawler, action: str, pauses: list[bool]) -> None:
    """Once the pipeline waits for room: note whether the engine is paused, then give room or close."""
    storage = cast("WarcPipeline | None", notes_of(crawler))
    assert storage
    if storage.writes.is_flushed():
        call_later(0.01, act_when_stuck, crawler, action, pauses)
        return
    pauses.append(crawler.engine.paused)
    # Some tries later: what must be said once must not be said with each.
    if action == "close":
        call_later(0.1, lambda: asyncio.ensure_future(crawler.engine.close_spider_async(reason="stuck")))
    else:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        call_later(0.1, resource.setrlimit, resource.RLIMIT_FSIZE, (hard, hard))


def main() -> None:
    order = json.loads(sys.argv[1])
    items: list[str] = []
    pauses: list[bool] = []
    # A paused engine looks this often whether it may go on; five seconds otherwise.
    ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = 0.05
    # Nobody has to end in ten seconds here, which a busy machine and its disk may take for any of these.
    for name in ("DISK_AT_CLOSE_SECONDS", "RECOVERY_AT_CLOSE_SECONDS", "INDEX_AT_CLOSE_SECONDS"):
        setattr(warc, name, 120.0)
    process = AsyncCrawlerProcess(order["settings"])
    crawler = process.create_crawler(TinySpider)
    crawler.signals.connect(lambda item: items.append(item["url"]), signals.item_scraped, weak=False)
    if order["room"] is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["room"], hard))
        action = order["when_stuck"]
        crawler.signals.connect(lambda: act_when_stuck(crawler, action, pauses), signals.engine_started, weak=False)
    process.crawl(crawler, urls=order["urls"])
    process.start()
    storage = cast("WarcPipeline | None", notes_of(crawler))
    stats = {key: value for key, value in crawler.stats.get_stats().items() if isinstance(value, (int, str))}
    report = {
        "stats": stats,
        "items": items,
        "copies": TinySpider.copies,
        "pauses": pauses,
        "unwritten": storage.writes.unwritten_count if storage else None,
        "is_flushed": storage.writes.is_flushed() if storage else None,
    }
    print(json.dumps(report))  # the answer  # noqa: T201


if __name__ == "__main__":
    main()
