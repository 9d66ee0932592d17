"""``python -m bigcrawl.page_store``: uploads the WARC files of a directory, in a process of low priority.

It prints a JSON object for each file, and one for a failure. The exit status is 1 if the store refused or failed, and 2
if it did not answer in time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.logs.plain import print_text
from bigcrawl.page_store.process import STALL_S
from bigcrawl.page_store.uploads import REFUSALS_MAX, DirectoryUploads
from bigcrawl.store.whole_files import StoredFiles

if TYPE_CHECKING:
    from collections.abc import Callable

_NICENESS: Final = 10  # between the crawl and idle priority


def main() -> int:
    given = _parser().parse_args()
    os.nice(_NICENESS)
    uploads: DirectoryUploads | None = None

    def fail(error: object) -> None:
        at, refused = (uploads.at, uploads.refused) if uploads is not None else ("", [])
        print_text(json.dumps({"error": str(error), "at": at, "refused": refused}))

    silence = f"nothing has moved for {given.stall:g} s: {given.url}, or the disk, does not answer"
    watchdog = Watchdog(given.stall, lambda: fail(silence))
    try:
        store = StoredFiles(given.url, "BIGCRAWL_WARC_STORE_URL", watchdog.record_progress)
        uploads = DirectoryUploads(store, _parse_suffixes(given.known), _parse_suffixes(given.required), given.refusals)
        for done in uploads.of_directory(given.directory, given.wait, given.after):
            watchdog.record_progress()
            print_text(json.dumps({**done._asdict(), "path": str(done.path)}))
    except (ConfigError, TransientStoreError, OSError) as error:
        fail(error)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m bigcrawl.page_store", description="Uploads WARC files.")
    parser.add_argument("directory", type=Path, help="of the files")
    parser.add_argument("url", help="of the store")
    parser.add_argument("--known", default="", metavar="SUFFIXES", help="suffixes of indexes, separated by commas")
    parser.add_argument("--required", default="", metavar="SUFFIXES", help="indexes that a file must have first")
    parser.add_argument("--wait", default=0.0, type=float, metavar="S", help="how long to wait for indexes")
    parser.add_argument("--after", default="", metavar="NAME", help="begin with the files behind this one")
    parser.add_argument("--stall", default=STALL_S, type=float, metavar="S", help="how long the store may do nothing")
    parser.add_argument("--refusals", default=REFUSALS_MAX, type=int, metavar="N", help="in a row, after which it ends")
    return parser


def _parse_suffixes(text: str) -> list[str]:
    return [suffix for suffix in text.split(",") if suffix]


GAVE_UP: Final = 2


class Watchdog:
    """Ends the process with status `GAVE_UP` after `stall_s` without progress."""

    def __init__(self, stall_s: float, tell: Callable[[], object]) -> None:
        self._stall_s = stall_s
        self._tell = tell
        self._moved_s = time.monotonic()
        threading.Thread(target=self._exit_without_progress, name="bigcrawl-watchdog", daemon=True).start()

    def record_progress(self) -> None:
        self._moved_s = time.monotonic()

    def _exit_without_progress(self) -> None:
        while (left_s := self._moved_s + self._stall_s - time.monotonic()) > 0:
            time.sleep(left_s)
        try:
            self._tell()
        finally:
            os._exit(GAVE_UP)


if __name__ == "__main__":
    sys.exit(main())
