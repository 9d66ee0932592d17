"""Why an answered page is not read, or only in part, as stored with the outcome of its URL.

To add a reason, append its name to `REASONS`, never in between; `bigcrawl/stats.py` gives its meaning.
"""

from __future__ import annotations

from typing import Final

REASONS: Final = (
    *("size", "pieces", "time", "dataloss", "decompressed-size", "decompression-ratio", "encodings", "packing"),
    *("header-bytes", "headers", "redirects", "page-bytes", "page-links", "page-link-bytes", "depth"),
    *("listing-packing", "listing-growth", "listing-bytes", "listing-tags", "listing-references", "listing-entries"),
)
_FIRST: Final = 64
"""The detail of the first reason; those below are the numbers of rules by which filters drop pages."""


def detail_of(reason: str) -> int:
    return _FIRST + REASONS.index(reason) if reason in REASONS else 0


def reason_of(detail: int) -> str | None:
    """Return the reason in the detail of an outcome; None if it is something else."""
    return REASONS[detail - _FIRST] if _FIRST <= detail < _FIRST + len(REASONS) else None
