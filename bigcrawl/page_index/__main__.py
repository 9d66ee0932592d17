"""``python -m bigcrawl.page_index``: makes indexes of WARC files in a process of its own, of low priority.

It prints a JSON object for each file, and goes on if nobody reads it. The exit status is 1 if an index was not made.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from bigcrawl.page_index.index_files import SUFFIXES, index_file

_NICENESS = 10  # behind the crawl, and before what is idle


def main() -> int:
    """Make the indexes; return the exit status."""
    parser = argparse.ArgumentParser("python -m bigcrawl.page_index", description="Makes indexes of WARC files.")
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE", help="a WARC file, X.warc.gz")
    parser.add_argument("--kinds", default="cdxj", help=f"with commas between them: {', '.join(SUFFIXES)}")
    parser.add_argument("--mode", default="600", help="permissions of the indexes, as in chmod")
    given = parser.parse_args()
    os.nice(_NICENESS)
    status = 0
    for path in given.paths:
        try:
            indexed = index_file(path, given.kinds.split(","), int(given.mode, 8))
        except OSError as error:
            _tell({"path": str(path), "error": str(error)})
            status = 1
        else:
            if indexed is not None:
                _tell({"path": str(path), "pages": indexed.pages, "problem": indexed.problem})
    return status


def _tell(line: dict[str, object]) -> None:
    try:
        print(json.dumps(line), flush=True)
    except BrokenPipeError:  # the node has ended meanwhile
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
