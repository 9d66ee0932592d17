"""The stats of requisites."""

from __future__ import annotations

from typing import Final

from bigcrawl.table_rows import Stat

_SET_BY: Final = "features/requisites/spider_middlewares.py"

STATS: Final = (
    Stat(
        "bigcrawl/requisites/{outcome}",
        "counter",
        "URLs",
        "Requisites of pages, style sheets and modules, counted once for each of them.",
        _SET_BY,
        (
            ("found", "read from one of them"),
            ("outside", "dropped, because BIGCRAWL_REQUISITES does not reach them"),
            ("too-many", "dropped, because they are beyond BIGCRAWL_REQUISITES_MAX, or too many steps from their page"),
            ("sent", "sent to the seen check; others had been sent recently"),
        ),
    ),
)
