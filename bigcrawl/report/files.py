"""Writes report.html and report.json, each atomically, readable by their owner only."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.private_files import make_private_directory, name_part, opener
from bigcrawl.report.document import document_of
from bigcrawl.report.figures import gather
from bigcrawl.report.html import html_of

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.report.document import Document
    from bigcrawl.views.opened_crawl import OpenedCrawl

HTML: Final = "report.html"
JSON: Final = "report.json"


async def write_report(crawl: OpenedCrawl, directory: Path) -> Document:
    """Write the report of a crawl into a directory, which is made if missing.

    Raises ConfigError if it cannot be written, and the errors of `gather`.
    """
    document = document_of(await gather(crawl))
    write_files(document, directory)
    return document


def write_files(document: Document, directory: Path) -> None:
    """Write both files, or raise ConfigError; earlier ones are replaced."""
    try:
        make_private_directory(directory)
        _write(directory / JSON, json.dumps(document.to_json(), indent=1, ensure_ascii=False) + "\n")
        _write(directory / HTML, html_of(document))
    except OSError as error:
        raise ConfigError(f"the report cannot be written to {directory}: {error}; name another directory") from error


def _write(path: Path, text: str) -> None:
    part = path.with_name(f"{path.name}.{name_part()}.part")
    try:
        with open(part, "w", encoding="utf-8", errors="replace", opener=opener) as file:
            file.write(text)
        part.replace(path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
