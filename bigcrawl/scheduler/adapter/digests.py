"""Digests that distinguish the start requests of spiders, and versions of a spider's code."""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
from typing import TYPE_CHECKING

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.scheduler.crawl.crawl_record import has_other_code

if TYPE_CHECKING:
    from scrapy import Spider

    from bigcrawl.redisdb.client import RedisClient

logger = logging.getLogger(__name__)


def start_digest(spider: Spider) -> str:
    arguments = {
        name: value
        for name, value in vars(spider).items()
        if isinstance(value, str | int | float | bool | list | tuple) and not name.startswith("_")
    }
    arguments.setdefault("start_urls", getattr(spider, "start_urls", []))
    text = json.dumps([spider.name, arguments], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def code_digest(spider: Spider) -> str:
    try:
        source = inspect.getsource(inspect.getmodule(type(spider)) or type(spider))
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


async def warn_if_edited(client: RedisClient, crawl: str, spider: Spider) -> None:
    """Warn if the spider's code was edited since the crawl began: fetched pages do not pass through the new code."""
    digest = code_digest(spider)
    try:
        is_edited = bool(digest) and await has_other_code(client, crawl, spider.name, digest)
    except TransientStoreError:
        return
    if is_edited:
        logger.warning(
            "the code of spider %(spider)s was edited since crawl %(name)s began: fetched pages do not pass "
            "through it again; -s BIGCRAWL_FRESH=1 starts the crawl from scratch",
            {"spider": spider.name, "name": crawl},
        )
