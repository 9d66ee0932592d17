"""``python -m bigcrawl.page_index``: makes indexes of WARC files in a process of low priority.

It prints a JSON object for each file. The exit status is 1 if an index was not made.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
from pathlib import Path

from bigcrawl.logs.plain import print_text
from bigcrawl.page_index.index_files import SUFFIXES, index_file, index_path

_NICENESS = 10  # between the crawl and idle priority


def main() -> int:
    parser = argparse.ArgumentParser("python -m bigcrawl.page_index", description="Makes indexes of WARC files.")
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE", help="a WARC file, X.warc.gz")
    parser.add_argument("--kinds", default="cdxj", help=f"with commas between them: {', '.join(SUFFIXES)}")
    parser.add_argument("--mode", default="600", help="permissions of the indexes, as in chmod")
    parser.add_argument("--left", action="store_true", help="wait for a process at work on it, then make missing parts")
    given = parser.parse_args()
    kinds = given.kinds.split(",")
    os.nice(_NICENESS)
    status = 0
    for path in given.paths:
        try:
            if given.left and not _is_missing(path, kinds):
                continue
            indexed = index_file(path, kinds, int(given.mode, 8))
        except OSError as error:
            print_text(json.dumps({"path": str(path), "error": str(error)}))
            status = 1
        else:
            if indexed is not None:
                print_text(json.dumps({"path": str(path), "pages": indexed.pages, "problem": indexed.problem}))
    return status


def _is_missing(path: Path, kinds: list[str]) -> bool:
    try:
        with path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
    except FileNotFoundError:
        return False
    return any(not index_path(path, kind).exists() for kind in kinds)


if __name__ == "__main__":
    sys.exit(main())
