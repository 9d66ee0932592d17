"""Checks, when a node joins, whether a server's configuration lets a crawl keep its promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    from bigcrawl.redisdb.client import RedisClient

_SECTIONS = ("memory", "persistence", "replication")


async def look_at_needs(client: RedisClient) -> list[str]:
    """Return the server's faults, each a sentence with its remedy.

    Raises:
        ConfigError: a crawl would lose URLs there in normal operation.
        TransientStoreError: Redis is unreachable.
    """
    by_section = [await client.ask_each_server("INFO", section) for section in _SECTIONS]
    faults: dict[str, None] = {}
    for replies in zip(*by_section, strict=False):  # of one server; masters may come and go meanwhile
        lines = b"\r\n".join(replies).decode("utf-8", "replace").splitlines()
        faults |= dict.fromkeys(faults_of(dict(line.split(":", 1) for line in lines if ":" in line)))
    return list(faults)


def faults_of(info: dict[str, str]) -> list[str]:
    """Return the faults in the fields of INFO. Raises what `look_at_needs` raises."""
    policy = info.get("maxmemory_policy", "noeviction")
    is_bounded = info.get("maxmemory", "0") != "0"
    if info.get("role") == "slave" and info.get("slave_read_only", "1") == "0":
        raise ConfigError(
            "the Redis at BIGCRAWL_REDIS_URL is a writable replica: it forgets all writes when its master sends it a "
            "full copy; set the URL to the master's address"
        )
    if policy.startswith("allkeys-") and is_bounded:
        raise ConfigError(
            f"the Redis at BIGCRAWL_REDIS_URL evicts any key when its memory is full (maxmemory-policy {policy}), and "
            f"so loses URLs; CONFIG SET maxmemory-policy noeviction, and the same in its configuration"
        )
    faults = []
    if policy != "noeviction":
        what = "hosts' delays" if policy.startswith("volatile-") else "URLs"
        faults.append(
            f"Redis would evict {what} when its memory is full (maxmemory-policy {policy}): "
            f"CONFIG SET maxmemory-policy noeviction, and the same in its configuration"
        )
    if info.get("aof_enabled", "1") == "0":
        faults.append(
            "Redis keeps no AOF: when it ends, it forgets everything since its last snapshot, up to the whole crawl; "
            "CONFIG SET appendonly yes, and the same in its configuration"
        )
    return faults
