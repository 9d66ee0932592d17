"""Hosts that are snoozed for a minute or more, or retired: what of theirs is in Redis goes back to the disk (step 8).

    back queue -> [one script] -> the partition's own inbox -> a step, which parks it behind its host

`exchange_urls` decides which hosts these are, and moves the counter `snoozes` on; the owner reads them then. It
leaves a snoozed host one URL in Redis, the next try, and a retired or blacklisted one none, and admits no more until
the host has answered. Next tries are counted apart, so that neither fills the hot set, however many there are. The
inbox is the way because it is exactly once already: a script that moves URLs from one place to the other needs no
number, and a step that merges them commits with the rest.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from bigcrawl.exceptions import OwnershipLostError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.replies import scores_of
from bigcrawl.redisdb.scripts import RETIRED_MS
from bigcrawl.scheduler.records.member import order_of, seq_of, unpack_member
from bigcrawl.scheduler.records.queued_url import UNCHECKED, QueuedUrl, encode_batch
from bigcrawl.scheduler.rules.blacklist import NOTHING

logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.rules.blacklist import Blacklist

HOSTS_AT_ONCE = 128  # that are parked in a round, once a second: some 25,000 URLs, 0.1 s of the node
URLS_AT_ONCE = 1_000  # of a host: one call blocks Redis some 2 us a URL
SNOOZED_HOT_MAX, UNAWAITED_HOT_MAX = 1, 0
LOOK_MS = 60_000  # between two looks at hosts of which nothing is heard
STALE_MS = 600_000  # a snoozed host is none any more when it was due so long ago: it had no URL to try


async def tend_snoozed(
    client: RedisClient, owned: Sequence[OwnedPartition], now_ms: int, blacklist: Blacklist = NOTHING
) -> None:
    """See which hosts of the partitions are away, and take what is too much of theirs out of Redis; no step may run.

    Args:
        client: of the crawl's Redis.
        owned: the partitions.
        now_ms: on the monotonic clock.
        blacklist: hosts that nobody waits for while they are away.

    Raises:
        TransientStoreError: Redis is away; nothing is lost.
    """
    moved = [
        mine
        for mine in owned
        if mine.snoozes != mine.snoozes_seen or (mine.away and now_ms - mine.away_read_ms >= LOOK_MS)
    ]
    if moved:
        await _read(client, moved, now_ms, blacklist)
    surplus = [
        (mine, host)
        for mine in owned
        if mine.away
        for host, urls in mine.hot.items()
        if host in mine.away and urls > mine.away[host]
    ]
    if surplus:
        await _park(client, surplus[:HOSTS_AT_ONCE], now_ms)


async def _read(client: RedisClient, moved: Sequence[OwnedPartition], now_ms: int, blacklist: Blacklist) -> None:
    seen = [mine.snoozes for mine in moved]
    stale_ms = client.now_ms() - STALE_MS
    await client.commands([("ZREMRANGEBYSCORE", mine.keys.snoozed, "-inf", stale_ms) for mine in moved])
    rows = await client.commands([("ZRANGE", mine.keys.snoozed, 0, -1, "WITHSCORES") for mine in moved])
    for mine, row in zip(moved, rows, strict=True):
        mine.note_away({host: _hot_max(host, score, blacklist) for host, score in scores_of(row)})
    # By hand, what is withheld is said to wait: the right counts must stand there before it is not looked at again.
    await _run(client, [mine.publish() for mine in moved])
    for mine, snoozes in zip(moved, seen, strict=True):
        mine.snoozes_seen, mine.away_read_ms = snoozes, now_ms


async def _park(client: RedisClient, surplus: Sequence[tuple[OwnedPartition, str]], now_ms: int) -> None:
    rows = await client.commands(
        [
            ("ZRANGE", mine.keys.back + host, mine.away[host], mine.away[host] + URLS_AT_ONCE - 1)
            for mine, host in surplus
        ]
    )
    moves = [
        (mine, mine.who, host, members, [_queued(host, member) for member in members])
        for (mine, host), row in zip(surplus, rows, strict=True)
        if (members := _movable(mine, row))
    ]
    calls = [
        scripts.park_urls(mine.keys, who, host, encode_batch(urls), members) for mine, who, host, members, urls in moves
    ]
    results = await client.run_each(calls)
    for (mine, who, host, members, urls), entry_id in zip(moves, results, strict=True):
        if not entry_id or isinstance(entry_id, Exception):
            continue
        if mine.who is who:  # else they are counted already
            mine.note_parked(host, len(members))
        orders = [order_of(url.priority, seq_of(member)) for url, member in zip(urls, members, strict=True)]
        mine.moved.note(entry_id, host, orders, now_ms)
    _raise_first(results)


def _movable(mine: OwnedPartition, members: Sequence[bytes]) -> Sequence[bytes]:
    """Those that may go; on disk nobody would know any more which of them are suspects."""
    if not mine.suspects:
        return members
    return [member for member in members if int(member.partition(b":")[0]) not in mine.suspects]


async def _run(client: RedisClient, calls: Sequence[scripts.Call[Any]]) -> None:
    _raise_first(await client.run_each(calls))


def _raise_first(results: Sequence[Any]) -> None:
    """A partition that is another node's now is seen by its next look; anything else is the loop's to handle."""
    failed = next((r for r in results if isinstance(r, Exception) and not isinstance(r, OwnershipLostError)), None)
    if failed is not None:
        raise failed


def _queued(host: str, member: bytes) -> QueuedUrl:
    """The URL of a member, as the inbox takes it: it was seen before, and is queued all the same."""
    try:
        fields = unpack_member(member)
        return QueuedUrl(fields.key, host, fields.priority, fields.flags | UNCHECKED, fields.body)
    except Exception:
        logger.exception("a URL of %(host)s in Redis cannot be read", {"host": host})
        return QueuedUrl(0, host, 0, UNCHECKED, member)  # it is dropped, counted, when its turn comes


def _hot_max(host: str, next_ms: float, blacklist: Blacklist) -> int:
    is_unawaited = next_ms >= RETIRED_MS or (len(blacklist) > 0 and blacklist.of_host(host) is not None)
    return UNAWAITED_HOT_MAX if is_unawaited else SNOOZED_HOT_MAX
