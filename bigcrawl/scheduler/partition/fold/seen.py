"""The seen check of a step: decodes inbox entries, and finds out which of their URLs are new (step 4).

Revisits are checked in their own way. A node sends a revisit in the call that acknowledges the URL. If the reply is
lost, or Redis forgets, the call is repeated; so an entry may come twice, and the URL may be fetched twice. The table
`visits` has the number of the last visit of each page. A revisit with the same number or a lower one is dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.scheduler.partition.tables import VISITS
from bigcrawl.scheduler.queues.looks import NOTHING_LISTED, first_look_s
from bigcrawl.scheduler.records.queued_url import (
    UNCHECKED,
    BatchFormatError,
    decode_batch,
    encode_batch,
    unsound_urls,
)
from bigcrawl.scheduler.records.revisits import RevisitsFormatError, decode_revisits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bigcrawl.drum.bucket import Bucket, CheckResult
    from bigcrawl.scheduler.partition.tables import Tables
    from bigcrawl.scheduler.queues.looks import Modified
    from bigcrawl.scheduler.queues.revisits import Revisits
    from bigcrawl.scheduler.records.inbox_entry import InboxEntry
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.scheduler.records.revisits import Revisit

RELEASED_A_STEP = 2_000  # as many URLs as a batch of links has; a step with them takes some ms longer


def entries_after(inbox: Sequence[InboxEntry], folded: str) -> list[InboxEntry]:
    """Return the entries after the last folded one, up to the first that needs a step of its own.

    They are in the order of their ids, which are compared as pairs of numbers. Everything before an entry with keys to
    forget is forgotten, and nothing after it: it is always the first of its step. Rows of an import are merged after
    the URLs of their step, so URLs that arrive after rows are left to the next step, which knows the rows.
    """
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
    """Return the URLs of all entries in order, and how many entries are rejected, whole or in part.

    Args:
        inbox: the entries.
        set_aside: called with an entry's id and its batch if that cannot be decoded, or a batch of its unsound URLs.
    """
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


def decode_revisits_of(entries: Sequence[InboxEntry], reject: Callable[[str, bytes], None]) -> list[Revisit]:
    """Return the revisits of all entries in order. `reject` is given what cannot be decoded."""
    found: list[Revisit] = []
    for entry in entries:
        if not entry.revisits:
            continue
        try:
            found += decode_revisits(entry.revisits)
        except RevisitsFormatError:
            reject(f"{entry.id}-revisits", entry.revisits)
    return found


def queue_revisits(
    tables: Tables, queue: Revisits, arrived: Sequence[Revisit], now_s: int, modified: Modified = NOTHING_LISTED
) -> int:
    """Queue the revisits that are of a later visit than any before. Return how many these are."""
    if not arrived:
        return 0
    last: dict[int, Revisit] = {}
    for revisit in arrived:
        known = last.get(revisit.url.key)
        if known is None or revisit.number > known.number:
            last[revisit.url.key] = revisit
    keys = np.array(sorted(last), dtype=KEY_TYPE)
    numbers = np.array([last[key].number for key in keys.tolist()], dtype=np.uint32)
    _, before = tables.visits.values(keys)
    is_later = numbers > before["number"]
    if is_later.any():
        values = np.empty(int(is_later.sum()), dtype=VISITS)
        values["number"] = numbers[is_later]
        tables.commit(tables.visits, tables.visits.put(keys[is_later], values))
    accepted = set(keys[is_later].tolist())
    for key, revisit in last.items():  # in the order of their arrival
        if key in accepted:
            queue.put(revisit.url, first_look_s(revisit, modified), now_s)
    return len(accepted)


def _id_order(entry_id: str) -> tuple[int, int]:
    milliseconds, _, sequence = entry_id.partition("-")
    return int(milliseconds), int(sequence or 0)
