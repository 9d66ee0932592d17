"""Settings, release and spider that must be the same on all nodes of a crawl, as heartbeats carry them.

A node that differs from a live node that joined earlier does not start, or stops once it finds out. A report without a
version is of release 0.1.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bigcrawl.config import BY_NAME
from bigcrawl.exceptions import ConfigError
from bigcrawl.json_text import read_json
from bigcrawl.redisdb.keys import CrawlKeys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.config import CrawlConfig
    from bigcrawl.redisdb.client import RedisClient

FIELD = "settings"
"""In a report: the settings that must agree and are not the defaults."""

SPIDER = "the spider"
"""Among the settings: the spider's name. Only this spider can run the crawl's stored requests."""

LEASES = "the way of leases"
"""Among the settings: a node that does not read block leases would claim the partitions of those that write them."""

ARGUMENTS = "arguments"
"""In a report: the spider's arguments that must not change in a crawl, if known."""

VERSION = "version"
FIRST_RELEASE = "0.1"

SINCE = "since"

BEATS = "beats"

_SPIDER = "spider"
_ARGUMENTS = "arguments"


def release_of(version: str) -> str:
    """Return the minor release of a version: "0.1" for "0.1.2" and "0.1.3.dev1+local"."""
    return ".".join(version.split(".")[:2])


def refusal(node: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> ConfigError | None:
    """Return the error that stops this node because it differs from another; None if they are alike."""
    if FIELD not in theirs:
        return None
    version, other = ours[VERSION], theirs.get(VERSION, FIRST_RELEASE)
    if release_of(version) != release_of(other):
        return ConfigError(
            f"bigcrawl is {version} here and {other} at node {node}, which is crawling: nodes of one minor release "
            f"work together; install {release_of(other)} here, or stop all nodes and start them with {version}"
        )
    spider, other_spider = ours[FIELD].get(SPIDER), theirs[FIELD].get(SPIDER)
    if spider and other_spider and spider != other_spider:  # then its settings may differ as well
        return ConfigError(
            f"{SPIDER} is {spider} here and {other_spider} at node {node}, which is crawling: one spider runs a crawl; "
            f"give {spider} a BIGCRAWL_CRAWL of its own"
        )
    if has_others(ours.get(ARGUMENTS), theirs.get(ARGUMENTS)):
        return ConfigError(
            f"{changed(ours[ARGUMENTS], theirs[ARGUMENTS])} at node {node}, which is crawling: {OWN_CRAWL}, or the "
            "same arguments"
        )
    if ours[FIELD].get(LEASES) != theirs[FIELD].get(LEASES):
        return ConfigError(
            f"bigcrawl renews leases in another way here than at node {node}, which is crawling: install the same "
            "build on all nodes, or stop all nodes first"
        )
    if different := _difference(ours[FIELD], theirs[FIELD]):
        return ConfigError(
            f"{different} at node {node}, which is crawling: it must be the same on all nodes of a crawl; set it "
            "back here, or stop all nodes and start them with the new value"
        )
    return None


OWN_CRAWL = "give this run a BIGCRAWL_CRAWL of its own"


def has_others(ours: Mapping[str, str] | None, theirs: Mapping[str, str] | None) -> bool:
    return ours is not None and theirs is not None and ours != theirs


def changed(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    name = min(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    here, there = (f"{given[name][:80]!r}" if name in given else "not given" for given in (ours, theirs))
    return f"the spider's argument {name} is {here} here and {there}"


def _difference(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    for name in sorted({*ours, *theirs}):
        if ours.get(name) != theirs.get(name):
            default = f"{BY_NAME[name].default}, the default" if name in BY_NAME else "unset"
            return f"{name} is {ours.get(name, default)} here and {theirs.get(name, default)}"
    return ""


def joined_before(theirs: Mapping[str, Any], their_node: str, ours: Mapping[str, Any], our_node: str) -> bool:
    return (theirs.get(SINCE, 0), their_node) < (ours.get(SINCE, 0), our_node)


async def record_spider(client: RedisClient, config: CrawlConfig) -> None:
    """Record this spider and its arguments as the crawl's, or check them.

    Another spider may take over a finished crawl. Nodes of other spiders must be dead: `Membership.wait_for_alike`.
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
