"""An entry of a partition's inbox (step 3): one message of a node to the partition's owner."""

from __future__ import annotations

from typing import Final, NamedTuple

FIELDS: Final = (b"b", b"e", b"o", b"f", b"r", b"v", b"w", b"c")
"""The names of an entry's fields in Redis, in the order of `InboxEntry`; the Lua scripts write them too."""
BATCH, EDGES, OUTCOMES, FORGOTTEN, ROWS, REVISITS, VOTES, CONTENTS = FIELDS


def id_order(entry_id: str) -> tuple[int, int]:
    """Return a stream id as numbers that sort in stream order."""
    time_ms, _, counter = entry_id.partition("-")
    return int(time_ms), int(counter or 0)


class InboxEntry(NamedTuple):
    """One message. A field that the message did not have is empty.

    Attributes:
        id: the entry's id in the stream: milliseconds and a counter.
        batch: URLs, see `records.queued_url`. If this and all other fields are empty, the entry is damaged.
        edges: links between PLDs, see `bigcrawl.scheduler.partition.fold.edges`.
        outcomes: how URLs ended, see `bigcrawl.scheduler.records.outcomes`.
        forgotten: keys of URLs to treat as never seen, see there; applied before the rest of the entry.
        rows: rows of a table from another crawl, see `bigcrawl.scheduler.partition.fold.imported_rows`; merged after
            the URLs of the entry.
        revisits: URLs of the outcomes that are to be visited again, see `bigcrawl.scheduler.records.revisits`.
        votes: what pages say of the URLs that they link to, see `bigcrawl.scheduler.records.votes`.
        contents: what pages contain, see `bigcrawl.scheduler.records.contents`.
    """

    id: str
    batch: bytes = b""
    edges: bytes = b""
    outcomes: bytes = b""
    forgotten: bytes = b""
    rows: bytes = b""
    revisits: bytes = b""
    votes: bytes = b""
    contents: bytes = b""

    @property
    def has_batch(self) -> bool:
        """Whether the sender put URLs into the entry."""
        return bool(self.batch) or not any(self[2:])
