"""The seen check of a step: decodes inbox entries, and finds their new URLs (step 4 of a URL's life)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.scheduler.records.queued_url import (
    UNCHECKED,
    BatchFormatError,
    decode_batch,
    encode_batch,
    unsound_urls,
)
from bigcrawl.scheduler.records.timed_url import TimedFormatError, decode_timed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bigcrawl.drum.bucket import Bucket, CheckResult
    from bigcrawl.scheduler.records.inbox_entry import InboxEntry
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.scheduler.records.timed_url import TimedUrl

RELEASED_A_STEP = 2_000  # as many URLs as a batch of links has; a step with them takes some ms longer


def entries_after(inbox: Sequence[InboxEntry], folded: str) -> list[InboxEntry]:
    """Return the entries after the last folded one, up to one with keys to forget, or URLs after imported rows."""
    last = _id_order(folded)
    start = next((at for at, entry in enumerate(inbox) if _id_order(entry.id) > last), len(inbox))
    has_rows = False
    for at in range(start, len(inbox)):
        entry = inbox[at]
        if at > start and (entry.forgotten or (has_rows and (entry.batch or entry.has_batch))):
            return list(inbox[start:at])
        has_rows = has_rows or bool(entry.rows)
    return list(inbox[start:])


def decode_entries(inbox: Sequence[InboxEntry], set_aside: Callable[[str, bytes], None]) -> tuple[list[QueuedUrl], int]:
    urls: list[QueuedUrl] = []
    rejected = 0
    for entry in inbox:
        if not entry.batch and not entry.has_batch:
            continue
        try:
            found, refused = decode_batch(entry.batch), b""
        except BatchFormatError:
            found, refused = [], entry.batch
        if unsound := unsound_urls(found):
            found, refused = [url for url in found if url not in unsound], encode_batch(unsound)
        urls += found
        if refused or not entry.batch:
            rejected += 1
            set_aside(entry.id, refused)
    return urls, rejected


def check_seen(seen: Bucket, urls: Sequence[QueuedUrl]) -> CheckResult:
    """Look up the URLs in DRUM, except unchecked ones, which always count as new and are not stored."""
    checked = np.array([not url.flags & UNCHECKED for url in urls], dtype=np.bool_)
    keys = np.array([url.key for url in urls], dtype=np.uint64)
    result = seen.check_update(keys[checked])
    new = np.ones(len(urls), dtype=np.bool_)
    new[checked] = result.new
    return result._replace(new=new)


def decode_timed_of(entries: Sequence[InboxEntry], reject: Callable[[str, bytes], None]) -> list[TimedUrl]:
    found: list[TimedUrl] = []
    for entry in entries:
        if not entry.timed:
            continue
        try:
            found += decode_timed(entry.timed)
        except TimedFormatError:
            reject(f"{entry.id}-revisits", entry.timed)
    return found


def _id_order(entry_id: str) -> tuple[int, int]:
    milliseconds, _, sequence = entry_id.partition("-")
    return int(milliseconds), int(sequence or 0)
