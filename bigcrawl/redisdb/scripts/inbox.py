"""What goes into a partition's inbox, and what is forgotten of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.redisdb.scripts.call import Call, owned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.redisdb.scripts.call import Identity, Value


def append_batch(
    keys: PartitionKeys, node: str, session: int, number: int, batch: bytes, urls: int, edges: bytes = b""
) -> Call[str | None]:
    """Put a batch into the inbox: the entry's id, "" when it was here before, None when an earlier one is missing."""

    def parse(reply: bytes | int) -> str | None:
        if isinstance(reply, bytes):
            return reply.decode()
        return None if reply else ""

    return Call(
        "append_batch", (keys.inbox, keys.sender, keys.state), (node, session, number, batch, urls, edges), parse
    )


def park_urls(keys: PartitionKeys, who: Identity, host: str, batch: bytes, members: Sequence[bytes]) -> Call[str]:
    """Move URLs of a host from its back queue to the inbox, as a batch; the entry's id, "" when one of them is gone."""
    return Call(
        "park_urls",
        (keys.owner, keys.state, keys.ready, keys.back, keys.inbox),
        (who.node, who.epoch, who.generation, host, batch, *members),
        owned(keys, lambda reply: reply[0].decode()),
        keys.partition,
    )


def set_aside_urls(
    keys: PartitionKeys, who: Identity, connections: int, urls: Sequence[tuple[int, bytes]], now_ms: int = 0
) -> Call[list[str]]:
    """Put taken URLs, (seq, batch of the one) each, back into the inbox; the entry of each, "" if it was not taken."""
    flat = tuple(value for url in urls for value in url)
    return Call(
        "set_aside_urls",
        (keys.owner, keys.state, keys.ready, keys.busy, keys.taken, keys.back, keys.host, keys.inbox),
        (now_ms, who.node, who.epoch, who.generation, connections, *flat),
        owned(keys, lambda reply: [entry_id.decode() for entry_id in reply]),
        keys.partition,
    )


def note_rewind(keys: PartitionKeys, who: Identity, readmitted: int, lost: bytes = b"") -> Call[bool]:
    """Count URLs that are offered again, and forget those whose packed keys are `lost`."""
    args = (who.node, who.epoch, who.generation, readmitted, lost)
    return Call("note_rewind", (keys.owner, keys.state, keys.inbox), args, owned(keys, bool), keys.partition)


def trim_partition(
    keys: PartitionKeys, who: Identity, inbox_id: str, batch_number: int, state: dict[str, Value]
) -> Call[int]:
    """Trim the inbox and the batch keys up to what is durable; publish the owner's counts."""
    flat = tuple(value for pair in state.items() for value in pair)
    return Call(
        "trim_partition",
        (keys.owner, keys.state, keys.inbox, keys.batches),
        (who.node, who.epoch, who.generation, inbox_id, batch_number, *flat),
        owned(keys, int),
        keys.partition,
    )


def advance_inbox(keys: PartitionKeys, inbox_id: str) -> Call[bool]:
    """Raise the stream's last id to at least `inbox_id`."""
    return Call("advance_inbox", (keys.inbox,), (inbox_id,), bool)
