"""Moves URLs of snoozed and retired hosts from Redis back to disk. Such a host is *away*.

    back queue -> [one script] -> the partition's own inbox -> a step, which parks it behind its host

`exchange_urls` decides which hosts are away and increments the counter `snoozes`. The owner then leaves one URL of a
snoozed host in Redis for the next try, and none of a retired or blacklisted host. It admits no more of them until the
host answers. Next tries never fill the hot set. URLs return through the inbox because a fold commits each entry exactly
once.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.replies import scores_of, sort_replies
from bigcrawl.redisdb.scripts import RETIRED_MS, Identity, Value
from bigcrawl.scheduler.records.member import order_of, seq_of, unpack_member
from bigcrawl.scheduler.records.queued_url import UNCHECKED, QueuedUrl, encode_batch
from bigcrawl.scheduler.rules.blacklist import NOTHING, Blacklist

logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition

HOSTS_AT_ONCE = 128  # per round, once a second: about 25,000 URLs, 0.1 s of the node
URLS_AT_ONCE = 1_000  # in one call, which blocks Redis about 2 us a URL
SNOOZED_HOT_MAX, GIVEN_UP_HOT_MAX = 1, 0
STALE_MS = 600_000  # after this time, a due host has no URL left to try, and no longer counts as snoozed


async def park_snoozed(
    client: RedisClient, partitions: Sequence[OwnedPartition], now_ms: int, blacklist: Blacklist = NOTHING
) -> None:
    """Find the hosts that are away and move their surplus URLs out of Redis. No step may run meanwhile."""
    changed = [partition for partition in partitions if partition.away.should_poll(now_ms)]
    if changed:
        await _read_changes(client, changed, now_ms, blacklist)
    surplus = [
        (partition, host)
        for partition in partitions
        if (hot_max := partition.away.hot_max)
        for host, urls in partition.hot.by_host.items()
        if host in hot_max and urls > hot_max[host]
    ]
    if surplus:
        await _park_surplus(client, surplus[:HOSTS_AT_ONCE])


async def _read_changes(
    client: RedisClient, partitions: Sequence[OwnedPartition], now_ms: int, blacklist: Blacklist
) -> None:
    changes = [owned.away.change_count for owned in partitions]
    stale_ms = client.now_ms() - STALE_MS
    await client.commands([("ZREMRANGEBYSCORE", owned.keys.snoozed, "-inf", stale_ms) for owned in partitions])
    rows = await client.commands([("ZRANGE", owned.keys.snoozed, 0, -1, "WITHSCORES") for owned in partitions])
    for owned, row in zip(partitions, rows, strict=True):
        owned.record_away({host: _hot_max(host, score, blacklist) for host, score in scores_of(row)})
    # `awaken` counts withheld URLs as waiting, so publish the right counts before handling these changes.
    sort_replies(partitions, await client.run_each([owned.publish() for owned in partitions])).raise_failure()
    for owned, read in zip(partitions, changes, strict=True):
        owned.away.record_poll(read, now_ms)


class _ParkingMove(NamedTuple):
    owned: OwnedPartition
    identity: Identity
    host: str
    members: Sequence[bytes]
    urls: list[QueuedUrl]

    @property
    def call(self) -> scripts.Call[str]:
        return scripts.park_urls(self.owned.keys, self.identity, self.host, encode_batch(self.urls), self.members)

    @property
    def orders(self) -> list[int]:
        return [order_of(url.priority, seq_of(m)) for url, m in zip(self.urls, self.members, strict=True)]


async def _park_surplus(client: RedisClient, surplus: Sequence[tuple[OwnedPartition, str]]) -> None:
    rows = await client.commands([_surplus_command(owned, host) for owned, host in surplus])
    moves = [
        _ParkingMove(owned, owned.identity, host, members, [_queued_url(host, member) for member in members])
        for (owned, host), row in zip(surplus, rows, strict=True)
        if (members := _movable_members(owned, row))
    ]
    replies = sort_replies(moves, await client.run_each([move.call for move in moves]))
    for move, entry_id in replies.done:
        if entry_id:
            if move.owned.identity is move.identity:  # otherwise a reconciliation has counted them meanwhile
                move.owned.record_parked(move.host, len(move.members))
            move.owned.moved.record_move(entry_id, move.host, move.orders, client.running_ms)
    replies.raise_failure()


def _surplus_command(owned: OwnedPartition, host: str) -> tuple[Value, ...]:
    hot_max = owned.away.hot_max[host]
    return ("ZRANGE", owned.keys.back + host, hot_max, hot_max + URLS_AT_ONCE - 1)


def _movable_members(owned: OwnedPartition, members: Sequence[bytes]) -> Sequence[bytes]:
    """Return the URLs that may be moved. Those suspected of killing a node stay: the disk does not record it."""
    if not owned.suspects:
        return members
    return [member for member in members if int(member.partition(b":")[0]) not in owned.suspects]


def _queued_url(host: str, member: bytes) -> QueuedUrl:
    try:
        fields = unpack_member(member)
        return QueuedUrl(fields.key, host, fields.priority, fields.flags | UNCHECKED, fields.body)
    except Exception:
        logger.exception("a URL of %(host)s in Redis cannot be read", {"host": host})
        return QueuedUrl(0, host, 0, UNCHECKED, member)  # dropped and counted when it is taken


def _hot_max(host: str, next_ms: float, blacklist: Blacklist) -> int:
    is_given_up = next_ms >= RETIRED_MS or (len(blacklist) > 0 and blacklist.of_host(host) is not None)
    return GIVEN_UP_HOT_MAX if is_given_up else SNOOZED_HOT_MAX
