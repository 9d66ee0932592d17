"""Calls for a user's list of entries (`bigcrawl.spiders.redis_spider`), or another crawler's queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgpack

from bigcrawl.redisdb.scripts.call import Call

if TYPE_CHECKING:
    from bigcrawl.redisdb.keys import ListKeys


class Entry(NamedTuple):
    """An entry of a list. `data` is None if it is too large; an entry of a stream has its fields as JSON."""

    data: bytes | None
    size: int
    score: float


class EntryBatch(NamedTuple):
    """Entries taken together, perhaps first by another node. Passing `name` as `ended` ends the batch."""

    name: str
    number: int
    entries: tuple[Entry, ...]


class TakenEntries(NamedTuple):
    """A batch, or the type of a key that cannot have entries."""

    batch: EntryBatch | None = None
    wrong_type: str = ""


def take_entries(
    keys: ListKeys,
    batch: str,
    lease_ms: int,
    ended: str,
    entries_max: int,
    bytes_max: int,
    entry_bytes_max: int,
    now_ms: int = 0,
) -> Call[TakenEntries]:
    """Take a batch of entries, and end the batch `ended`. With `entries_max` 0, only renew the lease of `batch`.

    `batch` must be a new name, unless the call is repeated.
    """
    args = (now_ms, batch, lease_ms, ended, entries_max, bytes_max, entry_bytes_max)
    return Call("take_entries", (keys.list, keys.entries, keys.leases), args, _parse_taken)


def _parse_taken(reply: list[bytes]) -> TakenEntries:
    if not reply:
        return TakenEntries()
    name, packed = reply
    if not name:
        return TakenEntries(wrong_type=packed.decode())
    number, *rest = msgpack.unpackb(packed, raw=True) if packed else (0,)
    rows = zip(rest[::2], rest[1::2], strict=True)
    return TakenEntries(EntryBatch(name.decode(), number, tuple(_parse_entry(data, score) for data, score in rows)))


def _parse_entry(data: bytes | int, score: bytes) -> Entry:
    if isinstance(data, bytes):
        return Entry(data, len(data), float(score or 0))
    return Entry(None, data, float(score or 0))


class QueuePart(NamedTuple):
    """Entries in the order in which they leave the queue; for one that is too large, its size in bytes."""

    kind: str
    length: int
    entries: list[bytes | int]


def read_queue(
    keys: ListKeys, rank: int, end: str, entries_max: int, bytes_max: int, entry_bytes_max: int
) -> Call[QueuePart]:
    """Read entries from `rank` on; `end`, left or right, is the end from which a list's entries leave."""

    def parse(reply: list[bytes | int]) -> QueuePart:
        kind, length, *entries = reply
        return QueuePart(kind.decode() if isinstance(kind, bytes) else "", int(length), entries)

    return Call("read_queue", (keys.list,), (rank, end, entries_max, bytes_max, entry_bytes_max), parse)
