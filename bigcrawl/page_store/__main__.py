"""``python -m bigcrawl.page_store``: uploads the WARC files of a directory, in a process of its own, of low priority.

It prints a JSON object for each file, and goes on if nobody reads it. The exit status is 0 if the store took all that
it was offered, 1 if it refused or failed, and 2 if it did not answer for so long that the process gave up.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Final

from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.page_store.uploads import Uploads
from bigcrawl.store.whole_files import WholeFiles

_NICENESS: Final = 10  # behind the crawl, and before what is idle
STALL_S: Final = 300.0
GAVE_UP: Final = 2


class Watchdog:
    """Ends the process if nothing has moved for so long: a call of the store may hang without an error."""

    def __init__(self, url: str, stall_s: float) -> None:
        self._url = url
        self._stall_s = stall_s
        self._moved_s = time.monotonic()
        threading.Thread(target=self._watch, name="bigcrawl-watchdog", daemon=True).start()

    def note_progress(self) -> None:
        """Begin to count anew."""
        self._moved_s = time.monotonic()

    def _watch(self) -> None:
        while (left_s := self._moved_s + self._stall_s - time.monotonic()) > 0:
            time.sleep(left_s)
        _tell({"error": f"nothing has moved for {self._stall_s:g} s: {self._url}, or the disk, does not answer"})
        os._exit(GAVE_UP)


def main() -> int:
    """Upload files; return the exit status."""
    parser = argparse.ArgumentParser("python -m bigcrawl.page_store", description="Uploads WARC files.")
    parser.add_argument("directory", type=Path, help="of the files")
    parser.add_argument("url", help="of the store")
    parser.add_argument("--known", default="", metavar="SUFFIXES", help="how names of indexes end, with commas between")
    parser.add_argument("--required", default="", metavar="SUFFIXES", help="indexes without which a file waits")
    parser.add_argument("--wait", default=0.0, type=float, metavar="S", help="for files that are still indexed")
    parser.add_argument("--stall", default=STALL_S, type=float, metavar="S", help="how long the store may be silent")
    given = parser.parse_args()
    os.nice(_NICENESS)
    watchdog = Watchdog(given.url, given.stall)
    try:
        store = WholeFiles(given.url, "BIGCRAWL_WARC_STORE_URL", watchdog.note_progress)
        uploads = Uploads(store, _suffixes(given.known), _suffixes(given.required))
        for done in uploads.of_directory(given.directory, given.wait):
            watchdog.note_progress()
            _tell({**done._asdict(), "path": str(done.path)})
    except (ConfigError, TransientStoreError, OSError) as error:
        _tell({"error": str(error)})
        return 1
    return 0


def _suffixes(text: str) -> list[str]:
    return [suffix for suffix in text.split(",") if suffix]


def _tell(line: dict[str, object]) -> None:
    try:
        print(json.dumps(line), flush=True)
    except BrokenPipeError:  # the node has ended meanwhile
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
