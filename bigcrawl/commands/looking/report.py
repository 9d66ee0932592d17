"""`scrapy frontier report [DIR]`: the figures of the crawl in the tables of the papers, as a page and as JSON."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bigcrawl.commands.opened_crawl import server_of
from bigcrawl.commands.result import Result
from bigcrawl.report.files import HTML, JSON, write_report

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config

DIRECTORY: Final = "report"


def report(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Write report.html and report.json, while the crawl runs or when it has ended.

    Into the directory that is named, or BIGCRAWL_REPORT_DIR, or `report`.

    Raises:
        ConfigError: there is no such crawl, or the directory cannot be written.
        TransientStoreError: Redis does not answer.
    """
    directory = Path(words[0]) if words else config.crawl.report_dir or Path(DIRECTORY)
    with server_of(config) as server:
        document = asyncio.run(write_report(config, server, directory))
    text = f"{directory / HTML}\n{directory / JSON}"
    return Result({"files": [str(directory / HTML), str(directory / JSON)], **document.to_json()}, text)
