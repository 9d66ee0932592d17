"""Spiders that take URLs and JSON from a list in Redis while they run; they replace those of scrapy-redis.

    redis-cli lpush quotes:start_urls http://a.example/
    redis-cli lpush quotes:start_urls '{"url": "http://a.example/", "meta": {"job": 7}}'

docs/guide/from-scrapy-redis.md lists the differences.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from scrapy import FormRequest, Request, Spider, signals
from scrapy.exceptions import CloseSpider
from scrapy.spiders import CrawlSpider

from bigcrawl.exceptions import ConfigError
from bigcrawl.json_text import read_json
from bigcrawl.scheduler.adapter.registry import frontier_of, has_failed, mark_failed
from bigcrawl.spiders.list_reader import ListReader
from bigcrawl.spiders.list_source import ListSource, redis_url_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from bigcrawl.scheduler.adapter.frontier import Frontier

logger = logging.getLogger(__name__)

BATCH_SIZE = 1_000
_WITHOUT_EFFECT = (
    *("setup_redis", "next_requests", "schedule_next_requests", "spider_idle", "pop_list_queue", "pop_priority_queue"),
    *("fetch_data", "count_size"),
)


class RedisMixin:
    """Makes a spider read a list; put it before the spider's class.

    The key may be a list, set, zset or stream, and several nodes may read it. An entry stays in Redis until its
    requests are in an inbox, so a killed node loses none, and each request is fetched once.

    Attributes:
        redis_key: the key; `%(name)s` in it is the spider's name. None: REDIS_START_URLS_KEY, else "<name>:start_urls".
        redis_batch_size: entries taken together; None for 1,000.
        redis_encoding: None for REDIS_ENCODING, else UTF-8.
        max_idle_time: seconds without an entry after which the spider of a finished crawl is closed; 0: never. None:
            MAX_IDLE_TIME_BEFORE_CLOSE.
    """

    redis_key: str | None = None
    redis_batch_size: int | None = None
    redis_encoding: str | None = None
    max_idle_time: float | None = None

    _reader: ListReader | None = None
    _reading: asyncio.Task[None] | None = None

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Keep the spider open without work; `max_idle_time` may close it."""
        settings.set("BIGCRAWL_CLOSE", "forever", "spider")
        super().update_settings(settings)  # type: ignore[misc]

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider: Self = super().from_crawler(crawler, *args, **kwargs)  # type: ignore[misc]
        crawler.signals.connect(spider._begin_reading, signals.spider_opened)
        crawler.signals.connect(spider._end_reading, signals.spider_closed)
        return spider

    def make_request_from_data(self, data: bytes) -> Any:
        """Return the request for an entry: a URL, or a JSON object as scrapy-redis reads it.

        An object has `url`, and may have `method` and `meta`; all else is form data. The requests have `dont_filter`,
        so a URL that is pushed again is fetched again. An override may return a request, several, or None.

        Raises:
            ValueError: the entry is neither; the caller logs, counts and omits it.
        """
        text = data.decode(self.redis_encoding or "utf-8").strip()
        if not text.startswith(("{", "[")):
            return Request(text, dont_filter=True)
        fields = read_json(text)
        if not isinstance(fields, dict) or not isinstance(fields.get("url"), str):
            raise ValueError("it has no url")  # noqa: TRY004 - of the entry
        url, method, meta = fields.pop("url"), fields.pop("method", "GET"), fields.pop("meta", {})
        if not isinstance(method, str) or not isinstance(meta, dict):
            raise ValueError("its method must be a string, and its meta an object")  # noqa: TRY004 - of the entry
        if not fields:
            return Request(url, method=method.upper(), meta=meta, dont_filter=True)
        return FormRequest(url, method=method.upper(), formdata=fields, meta=meta, dont_filter=True)

    def _begin_reading(self, spider: Spider) -> None:
        frontier = frontier_of(spider.crawler)
        if frontier is None:
            _require_scheduler(spider.crawler)
        elif frontier.node is not None and not has_failed(spider.crawler):
            try:
                self._reader = self._make_reader(spider, frontier, frontier.node.parts.crawl.client.url)
            except ConfigError as error:
                frontier.fail(error)
                return
            self._reading = asyncio.ensure_future(self._reader.run())

    def _make_reader(self, spider: Spider, frontier: Frontier, crawls_url: str) -> ListReader:
        settings = spider.crawler.settings
        name = self.redis_key or settings.get("REDIS_START_URLS_KEY") or "%(name)s:start_urls"
        try:
            key = name % {"name": spider.name}
        except (TypeError, ValueError, KeyError) as error:
            raise ConfigError(f"redis_key is {name!r}: the only placeholder allowed is %(name)s ({error})") from None
        self.redis_key = key
        self.redis_encoding = self.redis_encoding or settings.get("REDIS_ENCODING") or "utf-8"
        size = _parse_number("redis_batch_size", self.redis_batch_size, BATCH_SIZE, least=1)
        idle = _parse_number(
            "max_idle_time", self.max_idle_time, settings.get("MAX_IDLE_TIME_BEFORE_CLOSE") or 0, least=0
        )
        if not key.strip():
            raise ConfigError("redis_key is empty: name the key of the list")
        for method in _WITHOUT_EFFECT:
            if hasattr(self, method):
                logger.warning("%(method)s has no effect here: override make_request_from_data", {"method": method})
        url = redis_url_of(settings)
        source = ListSource(url or crawls_url, key, size, frontier.config.frontier.lease_ms)
        where = "REDIS_URL" if url else "the crawl's own Redis"
        logger.info("entries are taken from %(key)r in %(where)s", {"key": key, "where": where})
        return ListReader(spider.crawler, frontier, source, self.make_request_from_data, idle)

    async def _end_reading(self) -> None:
        if self._reader is None or self._reading is None:
            return
        self._reading.cancel()
        await asyncio.wait([self._reading])
        await self._reader.close()


class RedisSpider(RedisMixin, Spider):
    """A spider that reads a list in Redis; see `RedisMixin`."""


class RedisCrawlSpider(RedisMixin, CrawlSpider):
    """A CrawlSpider that reads a list in Redis; see `RedisMixin`."""


def _parse_number(name: str, value: object, default: object, *, least: int) -> int:
    chosen: Any = default if value is None else value
    try:
        if (number := int(chosen)) >= least:
            return number
    except (TypeError, ValueError):
        pass
    raise ConfigError(f"{name} is {chosen!r}: it must be a whole number of at least {least}")


def _require_scheduler(crawler: Crawler) -> None:
    """End a crawl on another scheduler, which would not keep the entries."""
    if has_failed(crawler):
        return  # the error was logged
    logger.error(
        "this spider needs bigcrawl's scheduler, but SCHEDULER is %(scheduler)s: remove that setting, and set "
        'ADDONS = {"bigcrawl.addon.Addon": 500}',
        {"scheduler": crawler.settings["SCHEDULER"]},
    )
    mark_failed(crawler)
    raise CloseSpider("bigcrawl_cannot_start")
