"""`python -m bigcrawl_sampling walks.jsonl`: the size of a web, from the output of the spider `sample`.

`--sample 1000` prints that number of URLs instead, drawn near-uniformly among the pages that were seen. `--covered-by
FILE` prints beside the sizes which share of the pages a list of URLs, or another crawl's index, has.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bigcrawl.exceptions import ConfigError
from bigcrawl.logs.plain import plain, print_text
from bigcrawl_sampling.coverage import read_listed
from bigcrawl_sampling.estimating import Interval, WalkArrays, sample_pages
from bigcrawl_sampling.steps import read_steps

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        with options.walks.open(encoding="utf-8", errors="replace") as lines:
            walks = WalkArrays(read_steps(lines, str(options.walks)))
        listed = {path: read_listed(path, walks.page_keys) for path in options.covered_by}
    except (OSError, ConfigError) as error:
        problem = f"{options.walks} cannot be read: {error}" if isinstance(error, OSError) else str(error)
        print(plain(problem), file=sys.stderr)
        return 1
    if options.sample:
        print_text(
            "\n".join(plain(step.url) for step in sample_pages(walks, options.sample, random.Random(options.seed)))
        )
        return 0
    found = walks.estimate()
    print(f"{found.walks:,} walks of {found.fetches:,} fetches saw {found.seen:,} URLs")
    print(f"URLs that links lead to: {found.urls}")
    print(f"pages among them: {found.pages}")
    for path, has in listed.items():
        share = walks.coverage(has.keys)
        size = Interval(found.pages.value * share.value, found.pages.low * share.low, found.pages.high * share.high)
        skipped = f" ({has.skipped:,} lines are no URL)" * bool(has.skipped)
        print(plain(f"{path}, {has.urls:,} URLs{skipped}: has {share} of the pages, so {size}"))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bigcrawl_sampling", description=__doc__)
    parser.add_argument("walks", type=Path, help="what the spider sample wrote: JSON lines")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="print N URLs of pages instead")
    parser.add_argument(
        "--covered-by",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="list of URLs, CDX or CDXJ index, or export of another crawl, of which the share of the pages is printed",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the dice for the sample; default 1")
    return parser


if __name__ == "__main__":
    sys.exit(main())
