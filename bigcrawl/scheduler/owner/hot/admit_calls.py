from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.records.member import order_of, pack_member

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.redisdb.scripts import Identity
    from bigcrawl.scheduler.partition.admit_batch import AdmitBatch


def admit_call(
    keys: PartitionKeys,
    identity: Identity,
    batch: AdmitBatch,
    connections: int,
    ended: Collection[int] = (),
    head_start_ms: int = 0,
) -> scripts.Call[bool]:
    """Return the call that admits a batch without the URLs numbered in `ended`; keys alone use up its number."""
    rows = [
        (url.host, order_of(url.priority, batch.first_seq + i), pack_member(batch.first_seq + i, url))
        for i, url in enumerate(batch.urls if batch.has_text else ())
        if batch.first_seq + i not in ended
    ]
    packed = pack_keys(url.key for url in batch.urls)
    chosen = batch.first_seq + len(batch.urls)
    left_out = sum(batch.first_seq <= seq < chosen for seq in ended)
    return scripts.admit_urls(
        keys,
        identity,
        batch.number,
        packed,
        connections,
        rows,
        chosen=chosen,
        left_out=left_out,
        head_start_ms=head_start_ms,
    )


def pack_keys(keys: Iterable[int]) -> bytes:
    values = list(keys)
    return struct.pack(f"<{len(values)}Q", *values)


def unpack_keys(data: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(data) // 8}Q", data))
