"""Nodes' reports in Redis, and each node's settings beside them, for processes that show the crawl.

Each field of a report is checked: a damaged report must not end other nodes.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.config import with_settings
from bigcrawl.exceptions import ConfigError
from bigcrawl.json_text import read_json
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.scheduler.crawl.alike import ARGUMENTS, BEATS, FIELD, SINCE, VERSION

if TYPE_CHECKING:
    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient

_TEXTS: Final = ("token", "name", "owned", "trouble", VERSION)
_TABLES: Final = ("stages", "figures", FIELD, ARGUMENTS)
_NUMBERS: Final = (
    *("held", "fetches_max", "outbox", "pages", "rate", "partitions", "visits_late_s", "late_ms", "capacity"),
    *("items", "item_rate", "warnings", "errors", "visits", "visits_unchanged"),
    *("sent_bytes_s", "look_ups_s", SINCE, BEATS),
)
_KINDS: Final = dict.fromkeys(_TEXTS, str) | dict.fromkeys(_TABLES, dict)
_RANGES: Final = re.compile(r"(?:\d{1,6}(?:-\d{1,6})?(?:,|$))*")
_LARGEST: Final = 1 << 53

_SINCE: Final = "since"
_SETTINGS: Final = "settings"


def read_report(text: str | bytes) -> dict[str, Any]:
    """Return a node's report, empty before its first one, or raise ValueError."""
    report = read_json(text or "{}")
    if not isinstance(report, dict):
        raise ValueError("it must be a JSON object")  # noqa: TRY004 - of the text
    for name, value in report.items():
        if not _is_sound(name, value):
            raise ValueError(f"its field {name} has the invalid value {str(value)[:40]!r}")
    return report


def read_or_nothing(text: str | bytes) -> dict[str, Any]:
    try:
        return read_report(text)
    except ValueError:
        return {}


def _is_sound(name: str, value: object) -> bool:
    if name in _NUMBERS:
        return isinstance(value, int | float) and abs(value) < _LARGEST and (name != "capacity" or value > 0)
    if name == "owned":
        return isinstance(value, str) and _RANGES.fullmatch(value) is not None
    return isinstance(value, _KINDS.get(name, object))


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
