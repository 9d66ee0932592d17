from __future__ import annotations

from typing import Final

from bigcrawl.table_rows import Stat

COUNTS: Final = (
    Stat(
        "exact_copies",
        "counter",
        "pages",
        "Pages with the content of another page, from any node and run, see `BIGCRAWL_CONTENT_SEEN`.",
        "trim_partition.lua",
    ),
    Stat(
        "near_copies",
        "counter",
        "pages",
        "Further pages with nearly the text of another page, see `BIGCRAWL_CONTENT_SEEN`.",
        "trim_partition.lua",
    ),
)
