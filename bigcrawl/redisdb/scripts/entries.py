"""Calls that take entries from a list of the user's (`bigcrawl.spiders.redis_spider`), or read another's queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgpack

from bigcrawl.redisdb.scripts.call import Call

if TYPE_CHECKING:
    from bigcrawl.redisdb.keys import ListKeys


class Entry(NamedTuple):
    """One entry of a list.

    Attributes:
        data: as the user wrote it; None if it is too large. The fields of a stream's entry are a JSON object, unless
            its only field is `data`.
        size: its bytes.
        score: of an entry of a zset; 0.0 for others.
    """

    data: bytes | None
    size: int
    score: float


class EntryBatch(NamedTuple):
    """Entries that were taken together.

    Attributes:
        name: what ends it. It may be the name for another batch, which a node did not end in time.
        number: name and number together are used once.
        entries: in order.
    """

    name: str
    number: int
    entries: tuple[Entry, ...]


class Taken(NamedTuple):
    """The result of a call.

    Attributes:
        batch: None if there was nothing to take.
        wrong_type: the type of the key, if entries cannot be taken from it.
    """

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
) -> Call[Taken]:
    """Take a batch of entries, and end the one before. With `entries_max` 0, only renew the lease of `batch`.

    Args:
        keys: of the list.
        batch: a name that was never used before, unless the call is repeated.
        lease_ms: when others may take the batch over.
        ended: the name of the batch that has ended; empty for none.
        entries_max: of a batch.
        bytes_max: of a batch; the last entry may be beyond them.
        entry_bytes_max: of a larger entry, only the size is kept.
        now_ms: the time; 0 for that of the client.
    """
    args = (now_ms, batch, lease_ms, ended, entries_max, bytes_max, entry_bytes_max)
    return Call("take_entries", (keys.list, keys.entries, keys.leases), args, _taken)


def _taken(reply: list[bytes]) -> Taken:
    if not reply:
        return Taken()
    name, packed = reply
    if not name:
        return Taken(wrong_type=packed.decode())
    number, *rest = msgpack.unpackb(packed, raw=True) if packed else (0,)
    rows = zip(rest[::2], rest[1::2], strict=True)
    return Taken(EntryBatch(name.decode(), number, tuple(_entry(data, score) for data, score in rows)))


def _entry(data: bytes | int, score: bytes) -> Entry:
    if isinstance(data, bytes):
        return Entry(data, len(data), float(score or 0))
    return Entry(None, data, float(score or 0))


class QueuePart(NamedTuple):
    """Some entries of another crawler's queue.

    Attributes:
        kind: the type of the key; "none" if it does not exist.
        length: how many entries the queue has.
        entries: in the order in which they leave it; of one that is too large, its bytes.
    """

    kind: str
    length: int
    entries: list[bytes | int]


def read_queue(
    keys: ListKeys, rank: int, end: str, entries_max: int, bytes_max: int, entry_bytes_max: int
) -> Call[QueuePart]:
    """Read the entries of a queue from a rank on, about as many bytes as `bytes_max`.

    Args:
        keys: of the queue, a list or zset.
        rank: of the first, from 0.
        end: the end of a list that leaves first, left or right.
        entries_max: how many to read.
        bytes_max: how many bytes to read; the last entries may be beyond them.
        entry_bytes_max: what an entry may have.
    """

    def parse(reply: list[bytes | int]) -> QueuePart:
        kind, length, *entries = reply
        return QueuePart(kind.decode() if isinstance(kind, bytes) else "", int(length), entries)

    return Call("read_queue", (keys.list,), (rank, end, entries_max, bytes_max, entry_bytes_max), parse)
