"""Why an answered page is dropped, not read, or only in part, as stored with the outcome of its URL.

To add a reason or a rule, append its name, never in between; `bigcrawl/stats.py` gives its meaning.
"""

from __future__ import annotations

from typing import Final

REASONS: Final = (
    *("size", "pieces", "time", "dataloss", "decompressed-size", "decompression-ratio", "encodings", "packing"),
    *("header-bytes", "headers", "redirects", "page-bytes", "page-links", "page-link-bytes", "depth"),
    *("listing-packing", "listing-growth", "listing-bytes", "listing-tags", "listing-references", "listing-entries"),
)
_FIRST: Final = 64
"""The detail of the first reason; those below are numbers of `PAGE_RULES`."""

PAGE_RULES: Final = ("media-type", "string", "language", "charset")
"""The rules by which filters drop pages."""
MEDIA_TYPE, STRING, LANGUAGE, CHARSET = PAGE_RULES

SIZE: Final = "size"
HEADS: Final = ("heads", f"dropped:{MEDIA_TYPE}", f"dropped:{SIZE}")
"""The crawl's counters of HEADs and of the URLs that they dropped."""


def number_of(rule: str) -> int:
    """Return a rule's number in the outcomes of pages that it dropped, from 1; 0 means no rule."""
    return PAGE_RULES.index(rule) + 1


def rule_of(detail: int) -> str | None:
    return PAGE_RULES[detail - 1] if 0 < detail <= len(PAGE_RULES) else None


def detail_of(reason: str) -> int:
    return _FIRST + REASONS.index(reason) if reason in REASONS else 0


def reason_of(detail: int) -> str | None:
    """Return the reason in the detail of an outcome; None if it is something else."""
    return REASONS[detail - _FIRST] if _FIRST <= detail < _FIRST + len(REASONS) else None
