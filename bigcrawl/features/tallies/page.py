"""Counts this node's fetches, and sends the tallies to Redis: totals since its start, so a repeat is harmless."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.features.tallies.tallies import Tallies
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.scheduler.handout.observers import NodeSide, Observer
from bigcrawl.scheduler.records.outcomes import reason_of, rule_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.scheduler.handout.observers import Headers
    from bigcrawl.scheduler.records.held import HeldUrl

SEND_MS: Final = 10_000
SEND_SAME_MS: Final = 60_000
"""After this time, tallies are sent again although nothing has changed. Redis may have lost them."""

GONE: Final = "gone"
"""The Redis field of gone nodes. No node has this id, because ids end with a random part."""

GONE_MAX: Final = 8
"""How many gone nodes may keep fields of their own, before they are merged."""


class NodeTallies(Observer):
    def __init__(self, side: NodeSide) -> None:
        self._side = side
        self._pld_of = side.pld_of
        self._keys = CrawlKeys(side.config.crawl.name)
        self._has_written = False
        self._repeated = self._sent_bytes = 0
        self._sent_ms = side.clock.monotonic_ms()
        self._put = b""
        self._put_ms = 0
        self.tallies = Tallies()
        self._totals: deque[tuple[int, int, int]] = deque()

    def record_headers(self, status: int, headers: Headers, body_bytes: int) -> None:
        get = dict.get  # Scrapy's own look-up costs ten times as much
        types, encodings = get(headers, b"Content-Type"), get(headers, b"Content-Encoding")
        self.tallies.record_answer(status, types[0] if types else None, encodings[0] if encodings else None, body_bytes)

    def record_unpacked(self, packed_bytes: int, body_bytes: int) -> None:
        self.tallies.record_unpacked(packed_bytes, body_bytes)

    def record_robots(self, status: int | None, body_bytes: int) -> None:
        self.tallies.record_robots(status, body_bytes)

    def record_end(self, held: HeldUrl) -> None:
        self.tallies.record_page(held.host, self._pld_of(held.host), held.address, held.fetched_bytes)
        if held.detail and (reason := reason_of(held.detail) or rule_of(held.detail)):
            self.tallies.record_part_read(reason)

    def record_gap(self, kind: str, name: str, gap_ms: int, due_ms: int) -> None:
        self.tallies.gaps[kind].count_gap(name, gap_ms, due_ms)

    def record_sent(self, urls: int, *, is_elsewhere: bool) -> None:
        self.tallies.record_sent(urls, is_elsewhere=is_elsewhere)

    def record_look_up(self, pld: str) -> None:
        self.tallies.record_look_up()

    def reported(self) -> Mapping[str, Any]:
        """Return the bytes of requests and the look-ups per second, over the last ten seconds."""
        totals = self._totals
        totals.append((self._side.clock.monotonic_ms(), self._side.sent_bytes(), self.tallies.look_ups))
        while len(totals) > 2 and totals[-1][0] - totals[1][0] >= SEND_MS:
            totals.popleft()
        since_ms, sent_bytes, look_ups = (now - then for now, then in zip(totals[-1], totals[0], strict=True))
        seconds = max(since_ms, 1_000) / 1_000
        return {
            "sent_bytes_s": max(0, round(sent_bytes / seconds)),
            "look_ups_s": max(0.0, round(look_ups / seconds, 2)),
        }

    async def send(self, *, is_last: bool) -> None:
        """Send the tallies if `SEND_MS` have passed. If Redis has no memory for them, they are sent the next time."""
        now_ms = self._side.clock.monotonic_ms()
        if now_ms - self._sent_ms >= SEND_MS or is_last:
            self._sent_ms = now_ms
            with suppress(RedisRefusedError):
                await self._send_tallies(now_ms, is_last=is_last)

    async def _send_tallies(self, now_ms: int, *, is_last: bool) -> None:
        repeated = self._side.repeated()
        self.tallies.record_repeated(repeated - self._repeated)
        self._repeated = repeated
        sent_bytes = self._side.sent_bytes()
        self.tallies.record_sent_bytes(sent_bytes - self._sent_bytes)
        self._sent_bytes = sent_bytes
        node, data = self._side.node, self.tallies.to_bytes()
        if data == self._put and now_ms - self._put_ms < SEND_SAME_MS and not is_last:
            return
        call = scripts.put_tallies(self._keys, node, data, is_first=not self._has_written)
        [put] = await self._side.client.run([call])
        if put.is_lost:  # other nodes took this one for dead, and have added its counts so far to the gone nodes'
            self.tallies.reset()
        if put.is_listed:  # if not, earlier tallies may still be there, or have been merged already
            self._has_written = not put.is_lost
        if put.is_listed and not put.is_lost:
            self._put, self._put_ms = data, now_ms
        reports = self._side.reports()
        if put.nodes > len(reports) + 1 + GONE_MAX and min(reports, default=node) == node:
            await self._merge_gone_nodes()

    async def _merge_gone_nodes(self) -> None:
        """Merge the tallies of some gone nodes into one field. Cost: about 60 ms of a worker thread."""
        from bigcrawl.features.tallies.counted import sum_of

        keys, client = self._keys, self._side.client
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
            return  # a node with a later version wrote them, and can read them
        read = {name: _sha1_hex(value) for name, value in nodes.items()}
        call = scripts.fold_tallies(keys, GONE, _sha1_hex(before) if before else "", total.to_bytes(), read)
        await client.run([call])


def observer_of(side: NodeSide) -> NodeTallies:
    return NodeTallies(side)


def _sha1_hex(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()
