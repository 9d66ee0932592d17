"""`scrapy frontier warc upload`: move complete WARC files to their store now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.commands.pages.files import directory_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.page_index.index_files import SUFFIXES
from bigcrawl.page_store.uploads import Uploads, waiting_files
from bigcrawl.store.whole_files import WholeFiles

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config

_SETTING = "BIGCRAWL_WARC_STORE_URL"


def upload_files(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Move complete WARC files and their indexes to the store, and say what is left here, and why.

    Raises:
        ConfigError: there is no store, or no directory.
        TransientStoreError: the store or the disk refuses; what was not moved is here.
    """
    url, directory = config.crawl.warc_store_url, directory_of(config)
    if url is None:
        raise ConfigError(f"{_SETTING} is not set: say where WARC files go with -s {_SETTING}=s3://bucket/path")
    uploads = Uploads(WholeFiles(url, _SETTING), tuple(SUFFIXES.values()), _required(config))
    files = moved = were_there = 0
    problems = []
    try:
        for done in uploads.of_directory(directory):
            if done.problem:
                problems.append(done.problem)
            else:
                files, moved, were_there = files + 1, moved + done.bytes, were_there + done.was_there
        left = len(waiting_files(directory)) - len(problems)
    except OSError as error:
        raise TransientStoreError(f"{directory} cannot be read: {error.strerror or error}") from error
    data = {"files": files, "were_there": were_there, "bytes": moved, "problems": problems, "left": left}
    lines = list(problems)
    if left:
        lines.append(f"{left:,} files are indexed or uploaded by others, or have no index: scrapy frontier warc index")
    lines.append(f"{files:,} files, {moved:,} bytes with their indexes, are in {url} now, and no longer here")
    return Result(data, "\n".join(lines), 1 if problems else 0)


def _required(config: Config) -> list[str]:
    return [SUFFIXES[kind] for kind in config.crawl.warc_indexes]
