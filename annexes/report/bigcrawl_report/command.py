"""`scrapy frontier report [DIR]`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from bigcrawl.commands.result import Result
from bigcrawl.views.counted import NothingCountedError
from bigcrawl.views.opened_crawl import in_crawl
from bigcrawl_report.files import HTML, JSON, write_report

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config

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
