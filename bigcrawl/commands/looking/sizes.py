from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from bigcrawl.warc.files import OPEN_SUFFIX, WARC_SUFFIX

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.views.opened_crawl import OpenedCrawl

_find_used = re.compile(rb"^used_memory:(\d+)", re.MULTILINE).search


async def redis_bytes(crawl: OpenedCrawl) -> int:
    """Return the memory that all Redis servers use, for other crawls too."""
    replies = await crawl.client.ask_each_server("INFO", "memory")
    return sum(int(found[1]) for found in map(_find_used, replies) if found is not None)


def page_bytes(directory: Path | None) -> dict[str, int | None]:
    """Return the bytes of WARC files and of all other files beside them; None if no WARC file is here."""
    pages = others = 0
    with suppress(OSError), os.scandir(directory or "") as entries:
        for entry in entries:
            size = 0
            with suppress(FileNotFoundError):  # renamed or moved meanwhile
                size = entry.stat().st_size if entry.is_file() else 0
            if entry.name.endswith((WARC_SUFFIX, WARC_SUFFIX + OPEN_SUFFIX)):
                pages += size
            else:
                others += size
    return {"pages": pages or None, "indexes": others if pages else None}
