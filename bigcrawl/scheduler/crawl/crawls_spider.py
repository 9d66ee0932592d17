from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bigcrawl.exceptions import ConfigError
from bigcrawl.json_text import read_json
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.alike import OWN_CRAWL, changed, has_others

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.config import CrawlConfig
    from bigcrawl.redisdb.client import RedisClient

_SPIDER = "spider"
_ARGUMENTS = "arguments"


async def take_for_spider(client: RedisClient, config: CrawlConfig) -> None:
    """Record this spider and its arguments as the crawl's, or check them.

    A finished crawl may pass to another spider. No node of another spider may be alive: `Membership.wait_for_alike`.
    """
    key = CrawlKeys(config.name).crawl
    ours = {_SPIDER: config.spider}
    if config.arguments is not None:
        ours[_ARGUMENTS] = json.dumps(dict(config.arguments), sort_keys=True)
    fields = [*ours, "finished"]
    *_, values = await client.commands(
        [*(("HSETNX", key, field, text) for field, text in ours.items()), ("HMGET", key, *fields)]
    )
    stored = {field: value for field, value in zip(fields, values, strict=True) if value is not None}
    require_spider(config, stored)
    for field, text in ours.items():
        if stored[field].decode() != text:
            await client.command("HSET", key, field, text)


def require_spider(config: CrawlConfig, stored: Mapping[str, bytes]) -> None:
    """Raise ConfigError if the crawl is unfinished and has another spider or other arguments."""
    if not config.spider or "finished" in stored:
        return
    theirs = stored.get(_SPIDER, b"").decode()
    if theirs and theirs != config.spider:
        raise ConfigError(
            f"crawl {config.name!r} belongs to spider {theirs!r} and is not finished, and its URLs would come back to "
            f"spider {config.spider!r}: give this spider its own BIGCRAWL_CRAWL, or let {theirs!r} finish"
        )
    arguments = _read(stored.get(_ARGUMENTS))
    if has_others(config.arguments, arguments):
        raise ConfigError(
            f"{changed(config.arguments or {}, arguments or {})} when crawl {config.name!r} was begun, which is not "
            f"finished, and its URLs would come back to this run: {OWN_CRAWL}, or resume with the same arguments"
        )


def _read(text: bytes | None) -> dict[str, str] | None:
    try:
        found = read_json(text or b"null")
    except ValueError:
        return None
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else None
