"""Sketches pages' contents, several at once, to find near copies (steps 13, 14 of a URL's life)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import numpy as np

from bigcrawl.bounded import BoundedDict
from bigcrawl.content.sketches import BANDS, sketches_of
from bigcrawl.content.text import read_part
from bigcrawl.features.copies.rows import SEEN, SKETCHED, SKETCHED_BYTES, pack_seen, pack_sketched
from bigcrawl.scheduler.handout.observers import Observer
from bigcrawl.scheduler.records.observed import ObservedRows

if TYPE_CHECKING:
    from bigcrawl.scheduler.handout.observers import Gist, SeenPage
    from bigcrawl.scheduler.records.held import HeldUrl

SENT_MAX: Final = 1 << 16
"""Contents remembered as sent, or as too short for a sketch, with their gists; about 10 MB."""

UNSKETCHED_BYTES_MAX: Final = 1 << 19
"""Bytes that may wait to be sketched. The last page may exceed this by the 64 KiB that are read of a page."""

_KEPT_BYTES: Final = 8 << 20

_CONTENT: Final = struct.Struct("<8xQ")


class NearContents(Observer):
    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._sent: BoundedDict[int, None] = BoundedDict(SENT_MAX)
        self._gists: BoundedDict[int, int] = BoundedDict(SENT_MAX)
        # URLs with the row of their page, its content, its gist, and the part that is sketched.
        self._unsketched: list[tuple[HeldUrl, ObservedRows, int, Gist, bytes]] = []
        self._unsketched_bytes = 0
        _keep_memory()

    def __repr__(self) -> str:
        return f"<NearContents partitions={self._partitions} sent={len(self._sent)}>"

    def rows_of(self, page: SeenPage) -> tuple[ObservedRows, ...]:
        content = page.content
        row = ObservedRows(content % self._partitions, pack_seen(content, page.held.fields.key), SEEN)
        gist = page.add_gist(self._gists.get(content, content))
        if page.is_text and content not in self._sent:
            if self._unsketched_bytes >= UNSKETCHED_BYTES_MAX:
                self.complete()
            part = read_part(page.body)
            self._unsketched.append((page.held, row, content, gist, part))
            self._unsketched_bytes += len(part)
        return (row,)

    def complete(self) -> None:
        waiting, self._unsketched, self._unsketched_bytes = self._unsketched, [], 0
        if not waiting:
            return
        sketches = sketches_of([part for *_, part in waiting])
        contents = np.array([content for _, _, content, _, _ in waiting], dtype=np.uint64)
        pages = np.array([held.fields.key for held, *_ in waiting], dtype=np.uint64)
        packed = pack_sketched(sketches.bands, contents, pages, sketches.packed)
        places = (sketches.bands % np.uint64(self._partitions)).ravel().tolist()
        starts = range(0, len(packed), SKETCHED_BYTES)
        rows = [
            ObservedRows(place, packed[at : at + SKETCHED_BYTES], SKETCHED)
            for place, at in zip(places, starts, strict=True)
        ]
        of_each = zip(waiting, sketches.made.tolist(), sketches.gists.tolist(), strict=True)
        for nth, ((held, seen, content, gist, _), is_made, key) in enumerate(of_each):
            if is_made:
                gist.complete(key)
                self._gists.remember(content, key)
                held.add_rows(seen, tuple(rows[nth * BANDS : (nth + 1) * BANDS]))
            else:
                self._sent.remember(content, None)

    def record_offered(self, rows: tuple[ObservedRows, ...]) -> None:
        if len(rows) == 1:
            return
        sketched = next((row for row in rows if row.kind == SKETCHED), None)
        if sketched is not None:
            (content,) = _CONTENT.unpack_from(sketched.rows)
            self._sent.remember(content, None)

    def send_again(self) -> None:
        self._sent.clear()


def _keep_memory() -> None:
    """Make the C library keep the memory of freed arrays, instead of mapping it anew for each batch of sketches.

    glibc keeps freed blocks that are smaller than the largest one freed so far. The block freed here is never written
    to, so it takes no memory.
    """
    np.empty(_KEPT_BYTES, dtype=np.uint8)
