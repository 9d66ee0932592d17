"""What is counted of languages."""

from __future__ import annotations

from typing import Final

from bigcrawl.table_rows import Stat

COUNTS: Final = (
    Stat("foreign_pages", "counter", "pages", "Pages in a language that nobody asked for.", "trim_partition.lua"),
)
