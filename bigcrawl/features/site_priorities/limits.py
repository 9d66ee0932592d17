from __future__ import annotations

from typing import Final

from bigcrawl.table_rows import LimitRow

PRIORITY: Final = "priority"
_HIGHEST: Final = 1_000_000

LIMITS: Final = (
    LimitRow(PRIORITY, _HIGHEST, "as of a request", "priority of its URLs, whatever pages and spider say", -_HIGHEST),
)
