"""Sends URLs and other data from a command to inboxes, and waits while owners are far behind."""

from __future__ import annotations

import asyncio
import sys
import time
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.records.inbox_entry import id_order
from bigcrawl.scheduler.records.queued_url import encode_batch

if TYPE_CHECKING:
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.views.opened_crawl import OpenedCrawl

BATCH_URLS_MAX: Final = 1_000
BATCH_BYTES_MAX: Final = 1 << 20
UNREAD_BYTES_MAX: Final = 64 << 20  # bytes sent before it waits for owners; inboxes hold at most twice that
_LOOK_S: Final = 0.5
_SAY_AFTER_S: Final = 10.0


@dataclass
class _Batch:
    urls: list[QueuedUrl] = field(default_factory=list)
    bytes: int = 0
    number: int = 0


class InboxSender:
    """Sends the data of one command. All methods raise TransientStoreError if Redis does not answer."""

    def __init__(self, crawl: OpenedCrawl, name: str) -> None:
        self._crawl = crawl
        self._node = f"{name}-{uuid.uuid4().hex[:8]}"
        self._batches: defaultdict[int, _Batch] = defaultdict(_Batch)
        self._unread_bytes = 0
        self._sent: dict[int, str] = {}
        self._awaited: dict[int, str] = {}

    async def add_url(self, partition: int, url: QueuedUrl) -> None:
        batch = self._batches[partition]
        batch.urls.append(url)
        batch.bytes += len(url.body)
        if len(batch.urls) >= BATCH_URLS_MAX or batch.bytes >= BATCH_BYTES_MAX:
            await self._send_batch(partition)

    async def send_later(self, partition: int, wire: bytes, data: bytes) -> None:
        """Send one field (see `records.inbox_entry`) to a partition, after all URLs added for it so far."""
        await self._send_batch(partition)
        entry = await self._crawl.client.command("XADD", self._crawl.keys(partition).inbox, "*", wire, data)
        await self._crawl.record_arrivals([partition])
        await self._record_sent(partition, entry.decode(), len(data))

    async def flush(self) -> None:
        for partition in list(self._batches):
            await self._send_batch(partition)

    async def _send_batch(self, partition: int) -> None:
        batch = self._batches[partition]
        if not batch.urls:
            return
        data = encode_batch(batch.urls)
        number = batch.number + 1
        call = scripts.append_batch(self._crawl.keys(partition), self._node, 1, number, data, len(batch.urls))
        [entry] = await self._crawl.client.run([call])
        await self._crawl.record_arrivals([partition])
        self._batches[partition] = _Batch(number=number)
        await self._record_sent(partition, entry or "", len(data))

    async def _record_sent(self, partition: int, entry: str, size: int) -> None:
        if entry:
            self._sent[partition] = entry
        self._unread_bytes += size
        if self._unread_bytes < UNREAD_BYTES_MAX:
            return
        await self._wait_until_read()
        self._awaited, self._sent, self._unread_bytes = self._sent, {}, 0

    async def _wait_until_read(self) -> None:
        begun, has_said = time.monotonic(), False
        while self._awaited:
            partition, entry = next(iter(self._awaited.items()))
            folded = await self._crawl.client.command("HGET", self._crawl.keys(partition).state, "folded")
            if folded is not None and id_order(folded.decode()) >= id_order(entry):
                del self._awaited[partition]
                continue
            if not has_said and time.monotonic() - begun > _SAY_AFTER_S:
                has_said = True
                text = "the inboxes are full, and this waits until nodes have read them: start the crawl"
                print(f"bigcrawl: {text}", file=sys.stderr, flush=True)
            await asyncio.sleep(_LOOK_S)
