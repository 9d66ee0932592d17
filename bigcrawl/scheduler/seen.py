"""The seen check of a step (step 4): inbox entries in, URLs and whether each is new out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.scheduler.queued_url import UNCHECKED, BatchFormatError, decode_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bigcrawl.drum.drum import CheckResult, Drum
    from bigcrawl.scheduler.queued_url import QueuedUrl

    Entry = tuple[str, bytes]


def entries_after(inbox: Sequence[Entry], folded: str) -> list[Entry]:
    """Return the entries behind the last folded one; stream ids are compared as pairs of numbers."""
    last = _id_order(folded)
    return [entry for entry in inbox if _id_order(entry[0]) > last]


def decode_entries(inbox: Sequence[Entry], set_aside: Callable[[str, bytes], None]) -> tuple[list[QueuedUrl], int]:
    """Return the URLs of all entries in order, and how many entries could not be decoded.

    Args:
        inbox: entries (id, batch).
        set_aside: called with each entry that cannot be decoded; it stops nothing.
    """
    urls: list[QueuedUrl] = []
    rejected = 0
    for entry_id, data in inbox:
        try:
            urls += decode_batch(data)
        except BatchFormatError:
            rejected += 1
            set_aside(entry_id, data)
    return urls, rejected


def check_seen(drum: Drum, urls: Sequence[QueuedUrl]) -> CheckResult:
    """Ask DRUM about all but the unchecked URLs; those count as new each time and are not remembered.

    Returns:
        DRUM's answer, with `new` in the shape of `urls`; the caller commits it.
    """
    checked = np.array([not url.flags & UNCHECKED for url in urls], dtype=np.bool_)
    keys = np.array([url.key for url in urls], dtype=np.uint64)
    result = drum.check_update(keys[checked])
    new = np.ones(len(urls), dtype=np.bool_)
    new[checked] = result.new
    return result._replace(new=new)


def _id_order(entry_id: str) -> tuple[int, int]:
    milliseconds, _, sequence = entry_id.partition("-")
    return int(milliseconds), int(sequence or 0)
