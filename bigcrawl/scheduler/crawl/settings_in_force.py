"""The settings of each node, kept in Redis as long as its report, for processes that show the crawl."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.config import with_settings
from bigcrawl.exceptions import ConfigError
from bigcrawl.json_text import read_json
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.replies import pairs_of

if TYPE_CHECKING:
    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient

_SINCE: Final = "since"
_SETTINGS: Final = "settings"


async def record_settings(client: RedisClient, config: Config, node: str) -> None:
    keys = CrawlKeys(config.crawl.name)
    text = json.dumps({_SINCE: client.now_ms(), _SETTINGS: config.in_force}, default=str)
    _, kept, known = await client.commands(
        [("HSET", keys.settings, node, text), ("HKEYS", keys.settings), ("HKEYS", keys.nodes)]
    )
    if gone := set(kept) - set(known) - {node.encode()}:
        await client.command("HDEL", keys.settings, *gone)


async def read_settings(client: RedisClient, crawl: str) -> dict[str, dict[str, Any]]:
    found = []
    for node, text in pairs_of(await client.command("HGETALL", CrawlKeys(crawl).settings)):
        try:
            entry = read_json(text)
            found.append((int(entry[_SINCE]), node.decode(), dict(entry[_SETTINGS])))
        except (ValueError, TypeError, KeyError):
            continue
    return {node: settings for _, node, settings in sorted(found, key=lambda row: row[:2])}


async def as_its_nodes(config: Config, client: RedisClient) -> Config:
    """Return the settings of the node that joined last, or this process's own if those cannot be read."""
    latest = list((await read_settings(client, config.crawl.name)).values())[-1:]
    try:
        return with_settings(config, latest[0]) if latest else config
    except ConfigError:
        return config
