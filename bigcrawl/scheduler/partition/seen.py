"""The seen check of a step: decodes inbox entries, and finds out which of their URLs are new (step 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.scheduler.records.queued_url import UNCHECKED, BatchFormatError, decode_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bigcrawl.drum.bucket import Bucket, CheckResult
    from bigcrawl.scheduler.records.inbox_entry import InboxEntry
    from bigcrawl.scheduler.records.queued_url import QueuedUrl


def entries_after(inbox: Sequence[InboxEntry], folded: str) -> list[InboxEntry]:
    """Return the entries after the last folded one, up to the first that needs a step of its own.

    They are in the order of their ids, which are compared as pairs of numbers. An entry with keys to forget is always
    the first of its step. So everything before it is forgotten, and nothing after it.
    """
    last = _id_order(folded)
    start = next((at for at, entry in enumerate(inbox) if _id_order(entry.id) > last), len(inbox))
    end = next((at for at in range(start + 1, len(inbox)) if inbox[at].forgotten), len(inbox))
    return list(inbox[start:end])


def decode_entries(inbox: Sequence[InboxEntry], set_aside: Callable[[str, bytes], None]) -> tuple[list[QueuedUrl], int]:
    """Return the URLs of all entries in order, and how many batches could not be decoded.

    Args:
        inbox: the entries.
        set_aside: called with the id and the bytes of each batch that cannot be decoded.
    """
    urls: list[QueuedUrl] = []
    rejected = 0
    for entry in inbox:
        if not entry.batch and not entry.has_batch:
            continue
        try:
            urls += decode_batch(entry.batch)
        except BatchFormatError:
            rejected += 1
            set_aside(entry.id, entry.batch)
    return urls, rejected


def check_seen(seen: Bucket, urls: Sequence[QueuedUrl]) -> CheckResult:
    """Look the URLs up in DRUM, except unchecked ones, which always count as new and are not stored.

    Returns:
        DRUM's result, with `new` in the shape of `urls`. The caller commits it.
    """
    checked = np.array([not url.flags & UNCHECKED for url in urls], dtype=np.bool_)
    keys = np.array([url.key for url in urls], dtype=np.uint64)
    result = seen.check_update(keys[checked])
    new = np.ones(len(urls), dtype=np.bool_)
    new[checked] = result.new
    return result._replace(new=new)


def _id_order(entry_id: str) -> tuple[int, int]:
    milliseconds, _, sequence = entry_id.partition("-")
    return int(milliseconds), int(sequence or 0)
