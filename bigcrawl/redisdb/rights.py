"""Checks that an ACL user of Redis has all rights that a node needs, because a script without one fails halfway."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CLOCK, CRAWLS, GATE_TAGS, CrawlKeys, gate_prefix, host_prefix, partition_keys

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.redisdb.client import RedisClient

NODE_COMMANDS: Final = (
    *("DEL", "EXISTS", "GET", "PERSIST", "PEXPIRE", "PTTL", "SET", "TIME"),
    *("HDEL", "HEXISTS", "HGET", "HGETALL", "HINCRBY", "HKEYS", "HLEN", "HMGET", "HSET", "HSETNX", "HSTRLEN", "HVALS"),
    *("XADD", "XDEL", "XINFO", "XRANGE", "XREVRANGE", "XTRIM"),
    *("ZADD", "ZCARD", "ZCOUNT", "ZPOPMIN", "ZRANGE", "ZRANGEBYSCORE", "ZREM", "ZREMRANGEBYSCORE", "ZSCORE"),
    "ZMSCORE",
)
"""The commands of scripts, except PING, INFO, SELECT, SCRIPT LOAD and EVALSHA, which a server's own error names."""


def key_patterns(crawl: str) -> tuple[str, ...]:
    return (f"bigcrawl:{{{crawl}}}:*", f"bigcrawl:{{{crawl}:p*}}:*", "bigcrawl:{gate*}:*", "bigcrawl:{clock}:*")


async def check_rights(client: RedisClient, crawl: str) -> None:
    rows = [(command, key) for command in NODE_COMMANDS for key in _example_keys(crawl)]
    [missing] = await client.run([scripts.check_rights(rows)])
    if missing:
        raise ConfigError(
            f"Redis denies the user of BIGCRAWL_REDIS_URL some commands that a node needs: use ACL SETUSER with "
            f"{' '.join(_rights_of(missing, crawl))}, and the same in its configuration; see "
            f"docs/operations.md"
        )


def _example_keys(crawl: str) -> list[str]:
    gates = [f"bigcrawl:{{gate{tag}}}:server:192.0.2.1" for tag in range(GATE_TAGS)]
    hosts = [host_prefix("a.example") + "a.example", gate_prefix("192.0.2.1") + "192.0.2.1"]
    return [CLOCK, CRAWLS, CrawlKeys(crawl).crawl, partition_keys(crawl, 0).owner, *gates, *hosts]


def _rights_of(missing: Iterable[tuple[str, str]], crawl: str) -> list[str]:
    rights: dict[str, None] = {}
    for command, key in missing:
        if not key:
            rights[f"+{command.lower()}"] = None
            continue
        start = key[: key.index("{") + 1]
        tag = key[len(start) : key.index("}")]
        pattern = next(one for one in key_patterns(crawl) if _is_of(tag, one[len(start) : one.index("}")]))
        rights[f"~{pattern}"] = None
    return list(rights)


def _is_of(tag: str, pattern: str) -> bool:
    return tag.startswith(pattern[:-1]) if pattern.endswith("*") else tag == pattern
