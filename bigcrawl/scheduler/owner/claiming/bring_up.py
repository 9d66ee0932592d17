"""Reconciles a newly claimed partition's disk with Redis.

The disk is ahead of Redis if a crash happened between commit and admission, or if Redis has forgotten its last
admissions (`durability`). Then the batches kept on disk are offered again; Redis accepts each number once. The disk is
behind Redis if the files are an old copy. Then URLs that Redis has admitted since are marked as admitted on disk.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys, PartitionKeys
from bigcrawl.redisdb.replies import pairs_of, scores_of
from bigcrawl.scheduler.gates.batcher import QuestionBatcher
from bigcrawl.scheduler.owner.hot.hot_set import InRedis, admit_call, pack_keys, unpack_keys
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID
from bigcrawl.scheduler.partition.partition import ADMIT_URLS_MAX, Partition
from bigcrawl.scheduler.records.at_gates import Suspicion
from bigcrawl.scheduler.records.queued_url import UNCHECKED, QueuedUrl

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.scripts import GrantedClaim, Identity, Value
    from bigcrawl.scheduler.partition.admit_batch import AdmitBatch

    Ready = list[tuple[str, float]]

logger = logging.getLogger(__name__)

_NOT_TRIMMED: dict[str, Value] = {"trimmed": ""}
FORGET_AT_ONCE = 10_000  # keys; 80 KB in one call


def inbox_polls(client: RedisClient) -> QuestionBatcher[tuple[PartitionKeys, str], Ready]:
    """Return a batcher that advances a partition's inbox to an entry, and then reads which of its hosts are ready."""

    async def ask_all(asked: list[tuple[PartitionKeys, str]]) -> list[Ready]:
        await client.run([scripts.advance_inbox(keys, inbox_id) for keys, inbox_id in asked])
        replies = await client.commands([("ZRANGE", keys.ready, 0, -1, "WITHSCORES") for keys, _ in asked])
        return [scores_of(reply) for reply in replies]

    return QuestionBatcher(ask_all)


async def bring_up(
    client: RedisClient,
    looks: QuestionBatcher[tuple[PartitionKeys, str], Ready],
    keys: PartitionKeys,
    identity: Identity,
    disk: Partition,
    claim: GrantedClaim,
    connections: int,
) -> InRedis:
    """Reconcile a newly claimed partition's disk with Redis. Return its state in Redis.

    Raises:
        OwnershipLostError: another node has claimed the partition since.
        TransientStoreError: Redis or the disk failed. Claim the partition again to repeat the call.
        CorruptionError: a batch that must be offered again is damaged.
    """
    if claim.admitted > disk.manifest.batch_number:
        await _mark_admitted(client, keys, disk, claim.admitted)
    if claim.admitted < disk.manifest.batch_number:
        await _offer_again(client, keys, identity, disk, claim.admitted, connections)
    found = await _in_redis(client, keys, await looks.ask((keys, disk.manifest.inbox_id)))
    return found._replace(
        suspects={seq: Suspicion.read(text) for seq, text in claim.deaths.items()},
        may_have_entries=(claim.inbox_id, disk.manifest.inbox_id) != (NO_INBOX_ID, NO_INBOX_ID),
    )


async def start_over(client: RedisClient, crawl: str, keys: PartitionKeys, identity: Identity) -> None:
    """Mark a partition whose files are lost, and let the next node that starts send the start requests again.

    URLs that had ended, or are in Redis, are no longer seen: if a page links to them, they are fetched again.
    """
    again = sum(int(count or 0) for count in await client.command("HMGET", keys.state, "ended", "hot"))
    logger.error(
        "partition %(partition)d starts from scratch, because its files were found nowhere: its waiting URLs are "
        "lost until pages link to them again, and up to %(again)d others are fetched twice (BIGCRAWL_LOST_PARTITIONS)",
        {"partition": keys.partition, "again": again},
    )
    record = CrawlKeys(crawl).crawl
    done = [field for field in await client.command("HKEYS", record) if field.startswith(b"start:")]
    if done:
        await client.command("HDEL", record, *done)
    anew: dict[str, Value] = _NOT_TRIMMED | {"begun_anew": 1, "may_refetch": again}
    await client.run([scripts.trim_partition(keys, identity, NO_INBOX_ID, 0, anew)])


async def continue_with_older_files(client: RedisClient, keys: PartitionKeys, identity: Identity, lack: str) -> None:
    """Continue with files that lack data that Redis has dropped."""
    logger.error(
        "%(lack)s: URLs that arrived since are lost until pages link to them again, and pages fetched since are "
        "fetched again (BIGCRAWL_LOST_PARTITIONS)",
        {"lack": lack},
    )
    await client.run([scripts.trim_partition(keys, identity, NO_INBOX_ID, 0, _NOT_TRIMMED)])


async def _offer_again(
    client: RedisClient, keys: PartitionKeys, identity: Identity, disk: Partition, admitted: int, connections: int
) -> None:
    """Offer the batches again that Redis has not admitted yet, or has forgotten.

    URLs that have ended since are left out. An old batch has only keys left, so its URLs cannot be offered. They are
    removed from URLSeen, so that they count as new when a page links to them.
    """
    batches = await asyncio.to_thread(lambda: list(disk.committed.batches(admitted)))
    ended = await asyncio.to_thread(_ended_numbers, disk, batches)
    if gone := [batch for batch in batches if not batch.has_text]:
        await _forget_lost(client, keys, identity, gone, ended)
    again = sum(seq not in ended for batch in batches if batch.has_text for seq, _ in _by_seq(batch))
    calls: list[scripts.Call[bool]] = [admit_call(keys, identity, batch, connections, ended) for batch in batches]
    await client.run([*calls, scripts.record_rewind(keys, identity, again)])


async def _forget_lost(
    client: RedisClient, keys: PartitionKeys, identity: Identity, gone: Sequence[AdmitBatch], ended: Collection[int]
) -> None:
    lost = [url.key for batch in gone for seq, url in _by_seq(batch) if seq not in ended]
    logger.error(
        "partition %(partition)d: Redis has lost more than BIGCRAWL_REDIS_LOSS_SECONDS, and with it the URLs of "
        "%(unknown)d older batches and %(lost)d others, which are fetched when a page links to them",
        {"partition": keys.partition, "lost": len(lost), "unknown": sum(not batch.urls for batch in gone)},
    )
    starts = range(0, len(lost), FORGET_AT_ONCE)
    packed = [pack_keys(lost[at : at + FORGET_AT_ONCE]) for at in starts]
    await client.run([scripts.record_rewind(keys, identity, 0, urls) for urls in packed])


def _ended_numbers(disk: Partition, batches: Sequence[AdmitBatch]) -> set[int]:
    """Return the sequence numbers of ended URLs, except those that are fetched whenever they are found."""
    rows = [row for batch in batches for row in _by_seq(batch) if not row[1].flags & UNCHECKED]
    ended = disk.have_ended([url for _, url in rows])
    return {seq for (seq, _), has_ended in zip(rows, ended.tolist(), strict=True) if has_ended}


def _by_seq(batch: AdmitBatch) -> Iterator[tuple[int, QueuedUrl]]:
    return enumerate(batch.urls, batch.first_seq)


async def _mark_admitted(client: RedisClient, keys: PartitionKeys, disk: Partition, admitted: int) -> None:
    rows = pairs_of(await client.command("HGETALL", keys.batches))
    batches = {int(number): unpack_keys(packed) for number, packed in rows}
    missing = sum(number not in batches for number in range(disk.manifest.batch_number + 1, admitted + 1))
    if missing:
        logger.error(
            "partition %(partition)d: its files are older than anything Redis remembers, as if restored from a backup; "
            "up to %(urls)d URLs are fetched again, and URLs that arrived since are lost",
            {"partition": keys.partition, "urls": missing * ADMIT_URLS_MAX},
        )
    await asyncio.to_thread(disk.fold_admitted, batches, admitted)


async def _in_redis(client: RedisClient, keys: PartitionKeys, ready: Ready) -> InRedis:
    """Count each host's URLs in Redis. The claim has returned taken ones to their queues."""
    counts = await client.commands([("ZCARD", keys.back + host) for host, _ in ready]) if ready else []
    by_host = {host: int(count) for (host, _), count in zip(ready, counts, strict=True) if count}
    return InRedis(by_host, max(0, int(ready[0][1]) - client.now_ms()) if ready else None)
