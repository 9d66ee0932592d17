"""A member: an admitted URL as Redis holds it.

Its bytes are b"<seq>:" + msgpack [key, priority, flags, attempts, body].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgpack

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.scheduler.records.queued_url import QueuedUrl

_new_tuple = tuple.__new__
_pack: Callable[[object], bytes] = msgpack.Packer().pack
_ARRAY_OF_FIVE = b"\x95"  # in msgpack
_SEQS = 1 << 33  # sequence numbers inside an order: 8.6e9 URLs a partition before equal priorities mix
PRIORITY_MAX = (1 << 19) - 1  # order = -priority * 2^33 + seq stays exact in a double's 53 bits
NOT_RULED = -(1 << 40)  # in place of a rule's priority, for a URL without one


class Member(NamedTuple):
    seq: int
    key: int
    priority: int
    flags: int
    attempts: int
    body: bytes


def pack_member(seq: int, url: QueuedUrl, attempts: int = 0) -> bytes:
    return b"%d:" % seq + _pack((url.key, url.priority, url.flags, attempts, url.body))


def moved_member(fields: Member, priority: int) -> bytes:
    return b"%d:" % fields.seq + _pack((fields.key, priority, fields.flags, fields.attempts, fields.body))


def unpack_member(data: bytes) -> Member:
    seq, _, rest = data.partition(b":")
    key, priority, flags, attempts, body = msgpack.unpackb(rest, raw=False)
    if not (type(key) is type(priority) is type(flags) is type(attempts) is int and type(body) is bytes):
        raise ValueError("a member has a field of a wrong type")
    return _new_tuple(Member, (int(seq), key, priority, flags, attempts, body))


def beginning_of(key: int) -> bytes:
    """Return what follows the sequence number and its colon in each member with this key."""
    return _ARRAY_OF_FIVE + _pack(key)


def seq_of(data: bytes) -> int:
    return int(data.partition(b":")[0])


def order_of(priority: int, seq: int) -> int:
    """Return a URL's place in its host's back queue: higher priority first, then arrival."""
    return -priority * _SEQS + seq % _SEQS


def priority_after_failure(priority: int) -> int:
    """Return the priority after a failed try: behind all untried URLs, and behind those with fewer tries."""
    return clamp_priority(min(priority, 0) - 1)


def clamp_priority(priority: int) -> int:
    return max(-PRIORITY_MAX, min(PRIORITY_MAX, priority))
