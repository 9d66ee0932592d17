"""An entry of a partition's inbox: one message of a node to the partition's owner."""

from __future__ import annotations

from typing import Final, NamedTuple

FIELDS: Final = (b"b", b"e", b"o", b"f", b"r", b"v", b"w", b"c")
"""The names of the fields in Redis, in the order of `InboxEntry`; the Lua scripts write them too."""
BATCH, EDGES, OUTCOMES, FORGOTTEN, ROWS, TIMED, ALONE, OBSERVED = FIELDS


def id_order(entry_id: str) -> tuple[int, int]:
    time_ms, _, counter = entry_id.partition("-")
    return int(time_ms), int(counter or 0)


class InboxEntry(NamedTuple):
    """One message (docs/redis-keys.md). Absent fields are empty; an entry without any field is damaged.

    `forgotten` is applied before the other fields, `rows` of an import after them.
    """

    id: str
    batch: bytes = b""
    edges: bytes = b""
    outcomes: bytes = b""
    forgotten: bytes = b""
    rows: bytes = b""
    timed: bytes = b""
    alone: bytes = b""
    observed: bytes = b""

    @property
    def has_batch(self) -> bool:
        return bool(self.batch) or not any(self[2:])
