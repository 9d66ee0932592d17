from __future__ import annotations

from typing import Final

from bigcrawl.table_rows import COUNT_MAX, LimitRow

PAGES: Final = "pages"
BYTES: Final = "bytes"

LIMITS: Final = (
    LimitRow(PAGES, COUNT_MAX, "URLs in all", "URLs that pass in total"),
    LimitRow(BYTES, COUNT_MAX, "bytes in all", "bytes of bodies that are fetched in total"),
)
"""`pages` counts from when the partition knows the rule. Fetches under way when `bytes` is reached are completed."""
