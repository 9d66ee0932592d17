"""The seen check of a step: decodes inbox entries, and finds their new URLs (step 4 of a URL's life), and new edges.

Edges are the PLD graph of a partition: which PLDs link to the partition's PLDs. Source: IRLbot §5 (STAR's
PLDindegree). Differs: edges are a set of hashes of pairs, not lists of neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.scheduler.records.queued_url import (
    UNCHECKED,
    BatchFormatError,
    QueuedUrl,
    TimedFormatError,
    TimedUrl,
    decode_batch,
    decode_if_sound,
    decode_timed,
    encode_batch,
    unsound_urls,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bigcrawl.drum.bucket import Bucket, CheckResult
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.partition.tables import Tables
    from bigcrawl.scheduler.records.inbox_entry import InboxEntry

EDGE_BYTES = 16

_PAIR = np.dtype("<u8")

RELEASED_A_STEP = 2_000  # as many URLs as a batch of links has; a step with them takes some ms longer


class EdgesFormatError(ValueError):
    pass


def decode_edges(data: bytes) -> KeyArray:
    if len(data) % EDGE_BYTES:
        raise EdgesFormatError(f"edges take {EDGE_BYTES} bytes each; these are {len(data)} bytes")
    return np.frombuffer(data, dtype=_PAIR).reshape(-1, 2)


def edge_keys(edges: KeyArray) -> KeyArray:
    """Return a hash of each pair. It must never change, because the table of edges stores it."""
    with np.errstate(over="ignore"):
        return _mix_bits(edges[:, 0] + _mix_bits(edges[:, 1]))


def new_targets(tables: Tables, edges: KeyArray) -> KeyArray:
    """Record edges, and return the target of each new one. A PLD occurs as often as its in-degree rises."""
    edges = edges[edges[:, 0] != edges[:, 1]]
    if not len(edges):
        return edges[:, 1]
    found = tables.edges.check_update(edge_keys(edges))
    tables.commit(tables.edges, found)
    targets: KeyArray = edges[found.new, 1]
    return targets


def _mix_bits(keys: KeyArray) -> KeyArray:
    # SplitMix64's last steps: each input bit changes about half of the output bits.
    keys = keys + np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: KeyArray = keys ^ (keys >> np.uint64(31))
    return mixed


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
    with_batch = [entry for entry in inbox if entry.batch or entry.has_batch]
    sound = decode_if_sound(entry.batch for entry in with_batch)
    if sound is not None:
        return sound, 0
    urls: list[QueuedUrl] = []
    rejected = 0
    for entry in with_batch:
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
