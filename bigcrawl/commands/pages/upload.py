"""`scrapy frontier warc upload`, which a signal may end: a file is then complete in the store, here, or in both."""

from __future__ import annotations

import signal
from contextlib import closing
from typing import TYPE_CHECKING, Final, Self

from bigcrawl.commands.pages.files import directory_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.page_index.index_files import SUFFIXES
from bigcrawl.page_store.process import STALL_S, UploadError, UploadOrders, UploadProcess
from bigcrawl.page_store.uploads import waiting_files
from bigcrawl.store.whole_files import StoredFiles

if TYPE_CHECKING:
    import argparse
    from collections.abc import Generator, Sequence
    from types import FrameType

    from bigcrawl.config import Config
    from bigcrawl.page_store.uploads import UploadResult

_SETTING: Final = "BIGCRAWL_WARC_STORE_URL"
_ENDING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_REFUSALS_MAX: Final = 20  # in a row; unlike a node, this command does not retry later


def upload_files(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Move complete WARC files and their indexes to the store, and print which ones stay here, and why."""
    url, directory = config.crawl.warc_store_url, directory_of(config)
    if url is None:
        raise ConfigError(f"{_SETTING} is not set: say where WARC files go with -s {_SETTING}=s3://bucket/path")
    StoredFiles(url, _SETTING)  # raises ConfigError if a package is missing
    orders = UploadOrders(
        directory, url, tuple(SUFFIXES.values()), _required_index_suffixes(config), _REFUSALS_MAX, STALL_S
    )
    files = moved = were_there = 0
    problems = []
    signals = _UploadSignals()
    try:
        with signals, closing(_follow_upload(orders, signals)) as uploaded:
            for done in uploaded:
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
    if signals.number:
        lines.append(
            f"ended by {signal.Signals(signals.number).name}: the other files are here; call again to move them"
        )
    elif left:
        lines.append(
            f"{left:,} files stay: another process has them, or they have no index: scrapy frontier warc index"
        )
    lines.append(f"{files:,} files, {moved:,} bytes with their indexes, are in {url} now, and no longer here")
    return Result(data, "\n".join(lines), 128 + signals.number if signals.number else 1 if problems else 0)


def _follow_upload(orders: UploadOrders, signals: _UploadSignals) -> Generator[UploadResult]:
    process = UploadProcess(orders)
    try:
        signals.raise_on_signals()
        yield from process.uploaded()
    except BaseException:
        if not process.stop():
            raise UploadError(f"process {process.pid} is still uploading: a hung disk or mount blocks it") from None
        raise


class _UploadSignals:
    """A context manager that ends its block at a signal, but only after `raise_on_signals`.

    Until then, a process may be starting. Signals that were ignored, as under nohup, stay ignored. A second signal ends
    the command at once.
    """

    def __init__(self) -> None:
        self.number = 0
        self._is_obeyed = False

    def __enter__(self) -> Self:
        heeded = [number for number in _ENDING if signal.getsignal(number) not in (signal.SIG_IGN, None)]
        self._before = {number: signal.signal(number, self._handle_signal) for number in heeded}
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> bool:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        return isinstance(error, _EndedError)

    def raise_on_signals(self) -> None:
        self._is_obeyed = True
        if self.number:
            raise _EndedError

    def _handle_signal(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        signal.signal(number, signal.SIG_DFL)
        if self._is_obeyed:
            raise _EndedError


class _EndedError(Exception):
    pass


def _required_index_suffixes(config: Config) -> list[str]:
    return [SUFFIXES[kind] for kind in config.crawl.warc_indexes]
