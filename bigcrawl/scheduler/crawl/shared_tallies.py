"""What nodes count for the crawl's report, in Redis: one value a node, and one of all nodes that are gone.

A node writes all that it has counted since its start, every ten seconds and when it leaves. So a repeat changes
nothing, and a killed node loses the counts of its last ten seconds. These counts are for people: no failure of theirs
is a trouble, and nothing waits for them.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.tallies.frequent import Frequent
from bigcrawl.tallies.tallies import PLDS_MAX, Tallies, TalliesFormatError, pages_by_pld_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.clock import Clock
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.membership import Membership

SEND_MS: Final = 10_000
GONE: Final = "gone"
"""The field of the sum; no node's id, which ends with a random part."""

GONE_MAX: Final = 8
"""Nodes that are gone may have fields of their own until they are more than that."""


class SharedTallies:
    """Sends the tallies of one node, and keeps those of nodes that are gone together."""

    def __init__(self, client: RedisClient, clock: Clock, crawl: str, membership: Membership, tallies: Tallies) -> None:
        self._client = client
        self._clock = clock
        self._keys = CrawlKeys(crawl)
        self._membership = membership
        self._tallies = tallies
        self._has_written = False
        self._sent_ms = clock.monotonic_ms()

    def __repr__(self) -> str:
        return f"<SharedTallies {self._tallies!r}>"

    async def send_if_due(self) -> None:
        """Send the tallies every `SEND_MS`. Cost: 2 ms and one command each time.

        Raises:
            TransientStoreError: Redis is away; they are sent again with the next ones.
        """
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._sent_ms >= SEND_MS:
            self._sent_ms = now_ms
            await self.send()

    async def send(self) -> None:
        """Send the tallies; raises as `send_if_due`. A Redis without memory for them drops them until the next time."""
        node, data = self._membership.node, self._tallies.to_bytes()
        call = scripts.put_tallies(self._keys, node, data, is_first=not self._has_written)
        with suppress(RedisRefusedError):
            [put] = await self._client.run([call])
            if put.is_lost:  # other nodes thought it dead, and its counts so far are in their sum
                self._tallies.begin_anew()
            if put.is_listed:  # if not, earlier ones may still be there, or be in the sum already
                self._has_written = not put.is_lost
            reports = self._membership.reports
            if put.nodes > len(reports) + 1 + GONE_MAX and min(reports, default=node) == node:
                await self._fold()

    async def _fold(self) -> None:
        """Fold the tallies of some nodes that are gone into one field. Cost: some 60 ms of a worker thread."""
        keys, client = self._keys, self._client
        fields, beats = await client.commands([("HKEYS", keys.tallies), ("ZRANGE", keys.beats, 0, -1)])
        gone = sorted({*fields} - {GONE.encode(), *beats})[:GONE_MAX]
        if not gone:
            return
        before, *values = await client.command("HMGET", keys.tallies, GONE, *gone)
        nodes = {name.decode(): value for name, value in zip(gone, values, strict=True) if value is not None}
        total, unreadable = await asyncio.to_thread(
            sum_of, [value for value in (before, *nodes.values()) if value is not None]
        )
        if unreadable:
            return  # a later version wrote them, and can read them
        read = {name: _sha1(value) for name, value in nodes.items()}
        call = scripts.fold_tallies(keys, GONE, _sha1(before) if before else "", total.to_bytes(), read)
        await client.run([call])


async def read_tallies(client: RedisClient, crawl: str) -> tuple[Tallies, int]:
    """Return what all nodes of a crawl have counted together, and of how many it could not be read.

    Cost: one HGETALL, 8 ms and up to 20 KB a node.

    Raises:
        TransientStoreError: Redis does not answer.
    """
    return await asyncio.to_thread(sum_of, await _values(client, crawl))


async def read_pages_by_pld(client: RedisClient, crawl: str) -> tuple[Frequent, int]:
    """Return the pages of the PLDs with most of them, over all nodes, and of how many nodes they could not be read.

    Cost: one HGETALL, 1 ms and up to 20 KB a node.

    Raises:
        TransientStoreError: Redis does not answer.
    """
    return await asyncio.to_thread(_pages_by_pld, await _values(client, crawl))


async def _values(client: RedisClient, crawl: str) -> list[bytes]:
    return [value for _, value in pairs_of(await client.command("HGETALL", CrawlKeys(crawl).tallies))]


def _pages_by_pld(values: Iterable[bytes]) -> tuple[Frequent, int]:
    total, unreadable = Frequent(PLDS_MAX), 0
    for value in values:
        try:
            found = pages_by_pld_of(value)
        except TalliesFormatError:
            unreadable += 1
        else:
            total.add_all(found.rows(), found.others, found.others_amount)
    return total, unreadable


def sum_of(values: Iterable[bytes]) -> tuple[Tallies, int]:
    """Return the sum of tallies as they are stored, and how many could not be read. Cost: 8 ms each."""
    total, unreadable = Tallies(), 0
    for value in values:
        try:
            total.add(Tallies.from_bytes(value))
        except TalliesFormatError:
            unreadable += 1
    return total, unreadable


def _sha1(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()
