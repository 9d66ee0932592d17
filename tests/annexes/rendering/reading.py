"""What a crawl with rendering has counted and stored."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fastwarc.warc import ArchiveIterator

if TYPE_CHECKING:
    from pathlib import Path


def counted(log: str) -> dict[str, int]:
    return {name: int(count) for name, count in re.findall(r"'render/([\w/]+)': (\d+)", log)}


def records(directory: Path) -> list[dict[str, Any]]:
    """The heads of all records, each with its body."""
    found: list[dict[str, Any]] = []
    for path in sorted(directory.rglob("*.warc.gz")):
        with path.open("rb") as file:
            stored = ArchiveIterator(file, parse_http=True)
            found += [{"WARC-Refers-To": "", **dict(record.headers), "body": record.reader.read()} for record in stored]
    return found
