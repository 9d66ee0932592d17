"""Tells other nodes where payloads are stored, by a stream in Redis (docs/copies.md); a lost entry only costs space."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

import msgpack

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.warc.origins import ORIGINS_MAX
from bigcrawl.warc.records import Origin
from bigcrawl.warc.shared_origins import DIGEST_BYTES

if TYPE_CHECKING:
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.adapter.frontier import Frontier
    from bigcrawl.warc.group_commit import GroupCommit
    from bigcrawl.warc.shared_origins import SharedOrigins

logger = logging.getLogger(__name__)

PERIOD_S: Final = 0.5
READ_MAX: Final = 10_000


class OriginSharing:
    def __init__(self, origins: SharedOrigins, disk: GroupCommit) -> None:
        self._origins = origins
        self._disk = disk
        self._from_id = ""
        self._unsafe: list[tuple[bytes, Origin]] = []
        self._safe_from = 0  # the number of written items from which on `_unsafe` is on the medium
        self._generation = origins.generation
        self.learned = 0

    def __repr__(self) -> str:
        return f"<OriginSharing learned={self.learned}>"

    async def run(self, frontier: Frontier) -> None:
        while True:
            await asyncio.sleep(PERIOD_S)
            node = frontier.node
            if node is None:
                continue
            try:
                await self.exchange(node.crawl.client, node.crawl.config.crawl.name, node.node_id)
            except BigcrawlError as error:
                logger.debug("copies that other nodes have stored are unknown: %(error)s", {"error": error})
            except Exception:
                logger.exception("copies that other nodes have stored are unknown from now on")
                return

    async def exchange(self, client: RedisClient, crawl: str, node: str) -> None:
        """Report own origins that are on the disk, and learn those of other nodes, in one round trip."""
        key, told = CrawlKeys(crawl).origins, self._take_safe()
        self._from_id = self._from_id or str(client.now_ms())
        rows: list[tuple[Any, ...]] = [
            ("XADD", key, "MAXLEN", "~", ORIGINS_MAX, "*", "o", digest + _pack(node, origin)) for digest, origin in told
        ]
        *_, read = await client.commands([*rows, ("XRANGE", key, self._from_id, "+", "COUNT", READ_MAX)])
        for entry_id, fields in read:
            self._from_id = "(" + entry_id.decode()
            self._learn(fields[1], node)

    def _take_safe(self) -> list[tuple[bytes, Origin]]:
        if self._generation != self._origins.generation:  # what was written since the last sync is written again
            self._generation = self._origins.generation
            self._unsafe = []
        safe: list[tuple[bytes, Origin]] = []
        if self._disk.safe_count >= self._safe_from:
            safe, self._unsafe = self._unsafe, self._origins.take_unsent()
            self._safe_from = self._disk.written
        return safe

    def _learn(self, packed: bytes, node: str) -> None:
        try:
            by, url, date_ms, record_id, status = msgpack.unpackb(packed[DIGEST_BYTES:])
        except ValueError:
            return
        if by != node:
            self._origins.learn(packed[:DIGEST_BYTES], Origin(url, date_ms, record_id, status))
            self.learned += 1


def _pack(node: str, origin: Origin) -> bytes:
    packed: bytes = msgpack.packb((node, *origin))
    return packed
