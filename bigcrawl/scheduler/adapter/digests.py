"""What tells one spider's start requests, and one version of its code, from another."""

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
    """What tells one set of start requests from another: the spider's name and its arguments."""
    arguments = {
        name: value
        for name, value in vars(spider).items()
        if isinstance(value, str | int | float | bool | list | tuple) and not name.startswith("_")
    }
    text = json.dumps([spider.name, arguments], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def code_digest(spider: Spider) -> str:
    """What tells one version of the spider's module from another; empty where its source is not there."""
    try:
        source = inspect.getsource(inspect.getmodule(type(spider)) or type(spider))
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


async def warn_if_edited(client: RedisClient, crawl: str, spider: Spider) -> None:
    """Say that the spider was edited since the crawl began: what was fetched does not pass through it again."""
    digest = code_digest(spider)
    try:
        is_edited = bool(digest) and await has_other_code(client, crawl, spider.name, digest)
    except TransientStoreError:
        return  # the node says itself that Redis is away
    if is_edited:
        logger.warning(
            "the code of spider %(spider)s was edited since crawl %(name)s began: what was fetched does not pass "
            "through it again; -s BIGCRAWL_FRESH=1 begins the crawl anew",
            {"spider": spider.name, "name": crawl},
        )
