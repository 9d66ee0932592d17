"""Digests that identify a spider's start requests, and the version of its code."""

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
    """Return a digest of the spider's name and arguments, which identifies its set of start requests."""
    arguments = {
        name: value
        for name, value in vars(spider).items()
        if isinstance(value, str | int | float | bool | list | tuple) and not name.startswith("_")
    }
    text = json.dumps([spider.name, arguments], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def code_digest(spider: Spider) -> str:
    """Return a digest of the source of the spider's module; empty if the source is not available."""
    try:
        source = inspect.getsource(inspect.getmodule(type(spider)) or type(spider))
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


async def warn_if_edited(client: RedisClient, crawl: str, spider: Spider) -> None:
    """Log a warning if the spider's code has changed since the crawl began: it does not see earlier pages again."""
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
