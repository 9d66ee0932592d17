"""An entry of a partition's inbox (step 3): what a node told the partition's owner in one message."""

from __future__ import annotations

from typing import NamedTuple


class InboxEntry(NamedTuple):
    """One message; a field that is empty was not in it.

    Attributes:
        id: of the entry in the stream, milliseconds and a number.
        batch: URLs, see `bigcrawl.scheduler.queued_url`; one without any other field is damaged when this is empty.
        edges: links between PLDs, see `bigcrawl.scheduler.edges`.
        outcomes: how URLs ended, see `bigcrawl.scheduler.outcomes`.
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
