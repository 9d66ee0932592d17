from __future__ import annotations

from typing import Final

from bigcrawl.table_rows import Stat

STATS: Final = (
    Stat(
        "bigcrawl/visits/{change}",
        "counter",
        "pages",
        "Visits by their finding about the page, if pages are visited again. Visits without an answer do not count.",
        "features/revisits/middlewares.py",
        (
            ("added", "a page that was not known"),
            ("changed", "another content, or a page that was gone is there again"),
            ("gone", "404, 410 or a redirect for good in place of a page"),
            ("unchanged", "the same content: 304, or a body with the same digest"),
        ),
    ),
)
