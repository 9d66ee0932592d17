from __future__ import annotations

from typing import Final

from bigcrawl.table_rows import LimitRow

REVISIT: Final = "revisit"

LIMITS: Final = (LimitRow(REVISIT, 315_360_000, "s", "wait between the visits of a page; 0: it is not visited again"),)
