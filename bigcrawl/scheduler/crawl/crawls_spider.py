"""Whose crawl it is: stored requests name methods of one spider, and answers go to no other (docs/decisions/0088)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import CrawlKeys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.redisdb.client import RedisClient

_FIELD = "spider"


async def take_for_spider(client: RedisClient, crawl: str, spider: str) -> None:
    """Note that the crawl is this spider's, or check that it is. A finished crawl may be taken by another spider.

    Nodes of other spiders must not be alive: `Membership.wait_for_alike`.

    Raises:
        ConfigError: the crawl is another spider's, and not finished.
        TransientStoreError: Redis is unreachable.
    """
    key = CrawlKeys(crawl).crawl
    _, noted, finished = await client.commands(
        [("HSETNX", key, _FIELD, spider), ("HGET", key, _FIELD), ("HGET", key, "finished")]
    )
    require_spider(crawl, spider, {_FIELD: noted, **({} if finished is None else {"finished": finished})})
    if noted.decode() != spider:
        await client.command("HSET", key, _FIELD, spider)


def require_spider(crawl: str, spider: str, stored: Mapping[str, bytes]) -> None:
    """Raise ConfigError if the fields of a crawl's record name another spider, and it is not finished."""
    theirs = stored.get(_FIELD, b"").decode()
    if spider and theirs and theirs != spider and "finished" not in stored:
        raise ConfigError(
            f"crawl {crawl!r} is that of spider {theirs!r} and not finished, and its URLs would come back to spider "
            f"{spider!r}: give this one a BIGCRAWL_CRAWL of its own, or let {theirs!r} finish"
        )
