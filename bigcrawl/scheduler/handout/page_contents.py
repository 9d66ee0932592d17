r"""What fetched pages contain, on the way to the partitions of their contents (steps 13 and 14). Memory only.

    page given to its spider -> rows at its held URL -> [page safe] -> outbox -> inboxes of its content's partitions
                             -> a hint, if its content is a sample -> outbox -> inbox of its PLD's partition
                 \-> [some pages wait] sketched together -/

Sketches are made of several pages at once, which costs half of what it costs one by one: when `UNSKETCHED_BYTES_MAX` of
pages wait, and at the latest when the first page of them is safe.

Rows leave the node only once their page is stored, so an original is always a page that the crawl has. Then they go
with the next batches, and the page is acknowledged after them, in the round trip in which it would be acknowledged
anyway. If the node dies before that, the page is fetched again and its rows come again. Partitions know them by the
keys of content and URL, so a page is never a copy of itself.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from bigcrawl.bounded import BoundedDict
from bigcrawl.content.exact_copies import content_key
from bigcrawl.content.sketches import BANDS, sketches_of
from bigcrawl.content.text import read_part
from bigcrawl.scheduler.budgets.mirrors import is_sample
from bigcrawl.scheduler.records.contents import (
    SKETCHED_BYTES,
    ContentRow,
    RowKind,
    pack_sampled,
    pack_seen,
    pack_sketched,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.scheduler.records.held import HeldUrl
    from bigcrawl.scheduler.records.held_urls import HeldUrls

SENT_MAX: Final = 1 << 16
"""Contents remembered whose sketches were sent, some 8 MB."""

SAMPLES_MAX: Final = 1 << 16
"""Samples of PLDs remembered that were sent, some 10 MB: what a PLD has on many pages counts once."""

UNSKETCHED_BYTES_MAX: Final = 1 << 19
"""How much may wait to be sketched; one more page, of which 64 KiB are read at most, may exceed it."""

_KEPT_BYTES: Final = 8 << 20
"""More than the arrays take of which a batch of sketches is made."""


class TakesContents(Protocol):
    """Where rows leave the node; in a node, `node.outbox.Outbox`."""

    @property
    def offered(self) -> int:
        """How many URLs and rows it has been offered so far."""

    def offer_content(self, row: ContentRow) -> None:
        """Take a row for a partition."""

    def offer_hint(self, row: ContentRow) -> None:
        """Take a row that may be lost."""


class PageContents:
    """Makes the rows of pages, and passes on those of pages that are safe.

    Args:
        held: the URLs of the node.
        outbox: where rows leave the node.
        partitions: of the crawl.
        has_sketches: whether near copies are looked for.
        pld_key_of: the key of a host's PLD; None if mirrors are not looked for.
        is_sample: whether a content is a sample in this crawl.
    """

    def __init__(
        self,
        held: HeldUrls,
        outbox: TakesContents,
        partitions: int,
        *,
        has_sketches: bool,
        pld_key_of: Callable[[str], int] | None = None,
        is_sample: Callable[[int], bool] = is_sample,
    ) -> None:
        self._held = held
        self._outbox = outbox
        self._partitions = partitions
        self._has_sketches = has_sketches
        self._pld_key_of = pld_key_of
        self._is_sample = is_sample
        self._sent: BoundedDict[int, None] = BoundedDict(SENT_MAX)  # contents
        self._sampled: BoundedDict[tuple[int, int], None] = BoundedDict(SAMPLES_MAX)  # PLDs and contents
        self._unsketched: list[tuple[HeldUrl, int, bytes]] = []  # with its content, and what is read of its page
        self._unsketched_bytes = 0
        if has_sketches:
            _keep_memory()

    def __repr__(self) -> str:
        return f"<PageContents partitions={self._partitions} sent={len(self._sent)}>"

    def note(self, held: HeldUrl, body: bytes, *, is_text: bool) -> None:
        """Note what the page of a URL contains.

        Args:
            held: the URL, not yet ended.
            body: without content encoding; an empty one is nobody's copy.
            is_text: whether it is HTML or other text, which may have near copies.

        Cost: 2 us for a page that was stored as it is; 15 us for one of 21 KB that was not, or was unpacked since. 75
        us for its sketch, which is not made of a content that was sent lately.
        """
        if not body:
            return
        sha1 = held.sha1_of(body) or hashlib.sha1(body, usedforsecurity=False).digest()
        content, page = content_key(sha1), held.fields.key
        held.note_content(content, (ContentRow(content % self._partitions, pack_seen(content, page)),))
        if self._has_sketches and is_text and content not in self._sent:
            part = read_part(body)
            self._unsketched.append((held, content, part))
            self._unsketched_bytes += len(part)
            if self._unsketched_bytes >= UNSKETCHED_BYTES_MAX:
                self._sketch()
        if self._pld_key_of is not None and self._is_sample(content):
            self._offer_sample(self._pld_key_of(held.host), content)

    def _sketch(self) -> None:
        """Make the sketches of the pages that wait for theirs, and note their rows."""
        waiting, self._unsketched, self._unsketched_bytes = self._unsketched, [], 0
        sketches = sketches_of([part for _, _, part in waiting])
        contents = np.array([content for _, content, _ in waiting], dtype=np.uint64)
        pages = np.array([held.fields.key for held, _, _ in waiting], dtype=np.uint64)
        packed = pack_sketched(sketches.bands, contents, pages, sketches.packed)
        places = (sketches.bands % np.uint64(self._partitions)).ravel().tolist()
        starts = range(0, len(packed), SKETCHED_BYTES)
        rows = [
            ContentRow(place, packed[at : at + SKETCHED_BYTES], RowKind.SKETCHED)
            for place, at in zip(places, starts, strict=True)
        ]
        for nth, ((held, content, _), is_made) in enumerate(zip(waiting, sketches.made.tolist(), strict=True)):
            held.note_sketch(content, tuple(rows[nth * BANDS : (nth + 1) * BANDS]) if is_made else ())

    def _offer_sample(self, pld: int, content: int) -> None:
        """Offer the row of a sample, unless its PLD had it lately: an error page at many URLs counts once."""
        sample = pld, content
        if sample not in self._sampled:
            self._outbox.offer_hint(ContentRow(pld % self._partitions, pack_sampled(*sample), RowKind.SAMPLED))
        self._sampled.remember(sample, None)

    def send_safe(self) -> None:
        """Offer the rows of ended URLs whose pages are safe to the outbox. Cost: 1 us each."""
        outbox = self._outbox
        safe = self._held.safe_with_content()
        if safe and self._unsketched:
            self._sketch()
        for held in safe:
            for row in held.content_rows:
                outbox.offer_content(row)
            if held.is_content_sketched:
                self._sent.remember(held.content, None)
            held.note_content_offered(outbox.offered)

    def send_again(self) -> None:
        """Redis may have forgotten rows: send all of what comes from now on, even of contents whose rows were sent."""
        self._sent.clear()
        self._sampled.clear()


def _keep_memory() -> None:
    """Have the C library keep the memory of arrays, which a batch of sketches would else be given anew, and cleared.

    That would cost more than the sketches. glibc keeps what is smaller than the largest block that was ever freed. This
    one is never written to, so that it takes no memory. Other libraries take no notice.
    """
    np.empty(_KEPT_BYTES, dtype=np.uint8)
