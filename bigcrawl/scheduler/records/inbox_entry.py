"""An entry of a partition's inbox (step 3): what a node told the partition's owner in one message."""

from __future__ import annotations

from typing import NamedTuple


def id_order(entry_id: str) -> tuple[int, int]:
    """A stream id as numbers that compare in its order."""
    time_ms, _, counter = entry_id.partition("-")
    return int(time_ms), int(counter or 0)


class InboxEntry(NamedTuple):
    """One message; a field that is empty was not in it.

    Attributes:
        id: of the entry in the stream, milliseconds and a number.
        batch: URLs, see `records.queued_url`; one without any other field is damaged when this is empty.
        edges: links between PLDs, see `bigcrawl.scheduler.partition.edges`.
        outcomes: how URLs ended, see `bigcrawl.scheduler.records.outcomes`.
        forgotten: keys of URLs that are to be as if they had never been met, see there; before all else of the entry.
    """

    id: str
    batch: bytes = b""
    edges: bytes = b""
    outcomes: bytes = b""
    forgotten: bytes = b""

    @property
    def has_batch(self) -> bool:
        """Whether URLs were meant to be in it."""
        return bool(self.batch) or not any(self[2:])
