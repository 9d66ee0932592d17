"""One side, as a process: the spiders of a table one after the other, by one of Scrapy's runners.

    python -m tests.integration.stock.side '<JSON: runner, crawls, arguments, told>'

A crawl is [spider's name, settings]. What each one did is written to the file `told`, a JSON list. With `is_offline`,
the process has no network, and every attempt to use one is written down.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from scrapy.crawler import AsyncCrawlerProcess, AsyncCrawlerRunner, CrawlerProcess, CrawlerRunner
from scrapy.utils.defer import deferred_f_from_coro_f
from scrapy.utils.log import configure_logging
from scrapy.utils.reactor import install_reactor

from tests.integration.stock import failing, holding, spiders
from tests.integration.stock.watch import TOLD
from tests.support.offline import ATTEMPTS, cut_off


def main(order: dict[str, Any]) -> None:
    if order.get("is_offline"):
        cut_off()
    known = spiders.SPIDERS | holding.SPIDERS | failing.SPIDERS
    crawls = [(known[name], settings, order["arguments"]) for name, settings in order["crawls"]]
    try:
        _RUNNERS[order["runner"]](crawls)
    finally:
        told = [{**watch.told(), "attempts": ATTEMPTS} for watch in TOLD]
        Path(order["told"]).write_text(json.dumps(told, default=repr))


def _by_process(crawls: Any, kind: Any) -> None:
    [(spider, settings, arguments)] = crawls
    process = kind(settings)
    process.crawl(spider, **arguments)
    process.start()


def _by_crawler_runner(crawls: Any) -> None:
    """As in Scrapy's documentation, "Run Scrapy from a script"."""
    configure_logging(crawls[0][1])
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from twisted.internet import reactor as installed

    reactor: Any = installed
    for spider, settings, arguments in crawls:
        deferred: Any = CrawlerRunner(settings).crawl(spider, **arguments)
        deferred.addBoth(lambda _: reactor.stop())
    reactor.run()


def _by_async_crawler_runner(crawls: Any) -> None:
    """As in Scrapy's documentation, one crawl after the other."""
    configure_logging(crawls[0][1])
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from twisted.internet.task import react

    async def crawl(_: Any) -> None:
        for spider, settings, arguments in crawls:
            await AsyncCrawlerRunner(settings).crawl(spider, **arguments)

    react(deferred_f_from_coro_f(crawl))


_RUNNERS = {
    "CrawlerProcess": lambda crawls: _by_process(crawls, CrawlerProcess),
    "AsyncCrawlerProcess": lambda crawls: _by_process(crawls, AsyncCrawlerProcess),
    "CrawlerRunner": _by_crawler_runner,
    "AsyncCrawlerRunner": _by_async_crawler_runner,
}

if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
