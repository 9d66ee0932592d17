from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.pools import is_sentinel_url
from bigcrawl.redisdb.reply_errors import RedisRefusedError

if TYPE_CHECKING:
    from bigcrawl.redisdb.client import RedisClient

_SECTIONS = ("server", "memory", "persistence", "replication")

# Bytes in Redis in the worst case (docs/performance.md, "Memory").
_SERVER_BYTES: Final = 2 << 20  # an empty server with all scripts
_PARTITION_BYTES: Final = 6_000
_HOT_URL_BYTES: Final = 1_060
_HOST_RECORD_BYTES: Final = 334
_ANSWER_BYTES: Final = 170
_INBOX_URL_BYTES: Final = 22


def bytes_needed(
    *, partitions: int, hot_urls: int, host_records: int, robots_bytes: int, dns_answers: int, inbox_urls: int
) -> int:
    """Estimate the bytes that a crawl needs in Redis, without the copy made while its log is rewritten."""
    return (
        _SERVER_BYTES
        + partitions * _PARTITION_BYTES
        + hot_urls * _HOT_URL_BYTES
        + host_records * _HOST_RECORD_BYTES
        + robots_bytes
        + dns_answers * _ANSWER_BYTES
        + inbox_urls * _INBOX_URL_BYTES
    )


async def check_server_needs(client: RedisClient, crawl_bytes: int) -> list[str]:
    """Return problems of the server's setup. Raise ConfigError if a crawl would lose URLs there or cannot write."""
    servers = await client.ask_each_server("INFO", *_SECTIONS)
    share = crawl_bytes // max(1, len(servers))
    faults: dict[str, None] = {}
    for reply in servers:
        lines = reply.decode("utf-8", "replace").splitlines()
        info = dict(line.split(":", 1) for line in lines if ":" in line)
        _check_role(info, is_named_by_sentinels=is_sentinel_url(client.url))
        faults |= dict.fromkeys(faults_of(info, share))
    return list(faults)


def _check_role(info: dict[str, str], *, is_named_by_sentinels: bool) -> None:
    """Raise ConfigError for a replica, unless it may soon become the master."""
    if info.get("role") != "slave":
        return
    if info.get("slave_read_only", "1") == "0":
        raise ConfigError(
            "the Redis at BIGCRAWL_REDIS_URL is a writable replica: it forgets all writes when its master sends it a "
            "full copy; set the URL to the master's address"
        )
    if "cluster" in (info.get("redis_mode"), info.get("server_mode")):
        return  # was a master until now, and redirects calls
    replica = "the Redis at BIGCRAWL_REDIS_URL is a read-only replica"
    if is_named_by_sentinels or info.get("master_link_status") != "up":
        raise RedisRefusedError(
            f"{replica}, which may be about to become the master; if not, set the URL to the master"
        )
    master = f"{info.get('master_host', '?')}:{info.get('master_port', '?')}"
    raise ConfigError(f"{replica} and accepts no writes: set the URL to the master (the replica says {master})")


def faults_of(info: dict[str, str], crawl_bytes: int) -> list[str]:
    policy = info.get("maxmemory_policy", "noeviction")
    memory_max = int(info.get("maxmemory", "0"))
    is_bounded = memory_max != 0
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
    if 0 < memory_max < crawl_bytes:
        faults.append(
            f"Redis may need up to {_to_mib(crawl_bytes)} MiB for this crawl and has {_to_mib(memory_max)} "
            f"(maxmemory): "
            f"CONFIG SET maxmemory {_to_mib(crawl_bytes)}mb, and the same in its configuration, or lower "
            f"BIGCRAWL_HOT_URLS, BIGCRAWL_HOST_RECORDS, BIGCRAWL_ROBOTS_BYTES or BIGCRAWL_DNS_SHARED"
        )
    return faults


def _to_mib(size: int) -> int:
    return -(-size >> 20)
