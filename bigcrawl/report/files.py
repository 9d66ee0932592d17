"""Writes a report: report.html and report.json, each whole or not at all, readable by their owner only."""

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

    from bigcrawl.config import Config
    from bigcrawl.report.document import Document

HTML: Final = "report.html"
JSON: Final = "report.json"


async def write_report(config: Config, server: str, directory: Path) -> Document:
    """Write the report of a crawl, from the Redis at this URL, into a directory, which is made if it is not there.

    Raises:
        ConfigError: there is no such crawl, or the directory cannot be written.
        TransientStoreError: Redis does not answer.
    """
    document = document_of(await gather(config, server))
    write_files(document, directory)
    return document


def write_files(document: Document, directory: Path) -> None:
    """Write both files; earlier ones are replaced.

    Raises:
        ConfigError: they cannot be written.
    """
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
