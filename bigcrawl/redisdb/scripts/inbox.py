from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from bigcrawl.redisdb.scripts.call import Call, Identity, Value, parse_if_owned

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bigcrawl.redisdb.keys import PartitionKeys


def append_batch(
    keys: PartitionKeys,
    node: str,
    session: int,
    number: int,
    batch: bytes,
    urls: int,
    edges: bytes = b"",
    observed: bytes = b"",
) -> Call[str | None]:
    """Append a batch. Return the entry's id; "" if it had been appended; None if an earlier batch is missing."""
    args = (node, session, number, batch, urls, edges, observed)
    return Call("append_batch", (keys.inbox, keys.sender, keys.state), args, _parse_appended)


def _parse_appended(reply: bytes | int) -> str | None:
    if isinstance(reply, bytes):
        return reply.decode()
    return None if reply else ""


def park_urls(keys: PartitionKeys, identity: Identity, host: str, batch: bytes, members: Sequence[bytes]) -> Call[str]:
    """Move URLs of a host from its back queue to the inbox. Return the entry's id; "" if a URL is gone."""
    return Call(
        "park_urls",
        (keys.owner, keys.state, keys.ready, keys.back, keys.inbox),
        (identity.node, identity.epoch, identity.generation, host, batch, *members),
        parse_if_owned(keys, lambda reply: reply[0].decode()),
        keys.partition,
    )


def set_aside_urls(
    keys: PartitionKeys, identity: Identity, connections: int, urls: Sequence[tuple[int, bytes]], now_ms: int = 0
) -> Call[list[str]]:
    """Move taken URLs, rows (seq, batch), to the inbox. Return their entries' ids; "" for URLs that are not taken."""
    flat = tuple(value for url in urls for value in url)
    return Call(
        "set_aside_urls",
        (keys.owner, keys.state, keys.ready, keys.busy, keys.taken, keys.back, keys.host, keys.inbox),
        (now_ms, identity.node, identity.epoch, identity.generation, connections, *flat),
        parse_if_owned(keys, lambda reply: [entry_id.decode() for entry_id in reply]),
        keys.partition,
    )


def record_rewind(keys: PartitionKeys, identity: Identity, readmitted: int, lost: bytes = b"") -> Call[bool]:
    args = (identity.node, identity.epoch, identity.generation, readmitted, lost)
    return Call("record_rewind", (keys.owner, keys.state, keys.inbox), args, parse_if_owned(keys, bool), keys.partition)


def trim_partition(
    keys: PartitionKeys, identity: Identity, inbox_id: str, batch_number: int, state: dict[str, Value]
) -> Call[int]:
    """Trim the inbox and the keys of durable batches, and publish the owner's counts."""
    flat: Iterable[Value] = chain.from_iterable(state.items())
    return Call(
        "trim_partition",
        (keys.owner, keys.state, keys.inbox, keys.batches),
        (identity.node, identity.epoch, identity.generation, inbox_id, batch_number, *flat),
        parse_if_owned(keys, int),
        keys.partition,
    )


def advance_inbox(keys: PartitionKeys, inbox_id: str) -> Call[bool]:
    return Call("advance_inbox", (keys.inbox,), (inbox_id,), bool)
