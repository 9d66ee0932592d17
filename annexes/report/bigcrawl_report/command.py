"""`scrapy frontier report [DIR]`: writes report.html and report.json, each atomically, readable by their owner only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.private_files import make_private_directory
from bigcrawl.store.local_files import write_whole
from bigcrawl.views.activity.events import events_of
from bigcrawl.views.counted import NothingCountedError
from bigcrawl.views.figures import gather_figures
from bigcrawl.views.opened_crawl import in_crawl
from bigcrawl_report.document import document_of
from bigcrawl_report.html import html_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config
    from bigcrawl.views.opened_crawl import OpenedCrawl
    from bigcrawl_report.document import Document

DIRECTORY: Final = "report"


def report(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Write report.html and report.json, while the crawl runs or when it has ended."""
    directory = Path(words[0]) if words else config.crawl.report_dir or Path(DIRECTORY)
    try:
        document = in_crawl(config, write_report, directory)
    except NothingCountedError as error:
        return Result({"files": []}, str(error))
    text = f"{directory / HTML}\n{directory / JSON}"
    return Result({"files": [str(directory / HTML), str(directory / JSON)], **document.to_json()}, text)


HTML: Final = "report.html"
JSON: Final = "report.json"


async def write_report(crawl: OpenedCrawl, directory: Path) -> Document:
    """Write the report of a crawl into a directory, which is made if missing.

    Raises ConfigError if it cannot be written, and the errors of `gather`.
    """
    events = (await events_of(crawl))["events"]
    document = document_of(await gather_figures(crawl), events)
    write_files(document, directory)
    return document


def write_files(document: Document, directory: Path) -> None:
    """Write both files, or raise ConfigError; earlier ones are replaced."""
    try:
        make_private_directory(directory)
        for name, text in (
            (JSON, json.dumps(document.to_json(), indent=1, ensure_ascii=False) + "\n"),
            (HTML, html_of(document)),
        ):
            write_whole(directory / name, [text.encode("utf-8", "replace")])
    except OSError as error:
        raise ConfigError(f"the report cannot be written to {directory}: {error}; name another directory") from error
