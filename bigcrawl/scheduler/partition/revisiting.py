"""Revisits in a step: those that inbox entries bring are queued by time, each once; those that are due are released.

A node sends a revisit in the call that acknowledges the URL. If the reply is lost, or Redis forgets, the call is
repeated. So an entry may come twice, and the URL may be fetched twice. The table `visits` has the number of the last
visit of each page; a revisit with the same number or a lower one is dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.scheduler.partition.tables import VISITS
from bigcrawl.scheduler.records.revisits import RevisitsFormatError, decode_revisits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bigcrawl.scheduler.partition.tables import Tables
    from bigcrawl.scheduler.queues.revisits import Revisits
    from bigcrawl.scheduler.records.inbox_entry import InboxEntry
    from bigcrawl.scheduler.records.revisits import Revisit

RELEASED_A_STEP = 2_000  # as many URLs as a batch of links has; a step with them takes some ms longer


def decode_all(entries: Sequence[InboxEntry], reject: Callable[[str, bytes], None]) -> list[Revisit]:
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


def queue_revisits(tables: Tables, queue: Revisits, arrived: Sequence[Revisit], now_s: int) -> int:
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
            queue.put(revisit.url, revisit.due_s, now_s)
    return len(accepted)
