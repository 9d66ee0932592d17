from __future__ import annotations

from typing import Final

from bigcrawl.table_rows import Stat

COUNTS: Final = (
    Stat(
        "mirrors",
        "gauge",
        "PLDs",
        "Pay-level domains whose budget is lowered because their pages are those of others, see "
        "`BIGCRAWL_TRAP_MIRROR_SHARE`.",
        "trim_partition.lua",
    ),
)
