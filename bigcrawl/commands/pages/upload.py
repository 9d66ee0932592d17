"""`scrapy frontier warc upload`: move complete WARC files to their store now, by a process that may be ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.commands.pages.files import directory_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.page_index.index_files import SUFFIXES
from bigcrawl.page_store.process import STALL_S, UploadError, UploadOrders, UploadProcess
from bigcrawl.page_store.uploads import waiting_files
from bigcrawl.store.whole_files import WholeFiles

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from bigcrawl.config import Config
    from bigcrawl.page_store.uploads import Uploaded

_SETTING: Final = "BIGCRAWL_WARC_STORE_URL"
_REFUSALS_MAX: Final = 20  # in a row; nobody calls again in a while, as a node does


def upload_files(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Move complete WARC files and their indexes to the store, and print which ones stay here, and why.

    A store that does not answer holds it for `STALL_S` at most.

    Raises:
        ConfigError: there is no store, or no directory.
        TransientStoreError: the store or the disk refuses, or does not answer; what was not moved is here.
    """
    url, directory = config.crawl.warc_store_url, directory_of(config)
    if url is None:
        raise ConfigError(f"{_SETTING} is not set: say where WARC files go with -s {_SETTING}=s3://bucket/path")
    WholeFiles(url, _SETTING)  # or a package is missing
    orders = UploadOrders(directory, url, tuple(SUFFIXES.values()), _required(config), _REFUSALS_MAX, STALL_S)
    files = moved = were_there = 0
    problems = []
    try:
        for done in _uploaded(orders):
            if done.problem:
                problems.append(done.problem)
            else:
                files, moved, were_there = files + 1, moved + done.bytes, were_there + done.was_there
        left = len(waiting_files(directory)) - len(problems)
    except UploadError as error:
        raise TransientStoreError("; ".join([f"{files:,} files were moved", *problems, str(error)])) from error
    except OSError as error:
        raise TransientStoreError(f"{directory} cannot be read: {error.strerror or error}") from error
    data = {"files": files, "were_there": were_there, "bytes": moved, "problems": problems, "left": left}
    lines = list(problems)
    if left:
        lines.append(
            f"{left:,} files stay: another process has them, or they have no index: scrapy frontier warc index"
        )
    lines.append(f"{files:,} files, {moved:,} bytes with their indexes, are in {url} now, and no longer here")
    return Result(data, "\n".join(lines), 1 if problems else 0)


def _uploaded(orders: UploadOrders) -> Iterator[Uploaded]:
    process = UploadProcess(orders)
    try:
        yield from process.uploaded()
    except BaseException:
        process.stop()
        raise


def _required(config: Config) -> list[str]:
    return [SUFFIXES[kind] for kind in config.crawl.warc_indexes]
