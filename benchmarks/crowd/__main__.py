"""`python -m benchmarks.crowd`: pages through a narrow link, a fixed number at a time and an adaptive one.

The link is wide, narrow, and wide again; printed are, every five seconds of both crawls, the limit, pages a second,
the median time of a fetch, and how many ran into DOWNLOAD_TIMEOUT. Then both crawl without such a link: hosts that all
take 8 s, which are no crowd, and hosts that answer at once, as fast as a core can. It needs root (its own network
namespace), and two cores that have nothing else to do.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from benchmarks.crawl.report import aligned, say
from benchmarks.crowd.link import enter_own_namespace
from benchmarks.crowd.run import WINDOW_S, crawl, crawl_freely

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.crowd.run import Rate, Window

WANTED: Final = 0.95
_ROUNDS, _FREE_S = 3, 10.0
SLOW_WANTED: Final = 0.7  # of 60 s, some ten go by until all fetches are allowed
SLOW_MS, SLOW_HOSTS, SLOW_FETCHES, SLOW_S = 8_000, 1_500, 1_000, 60.0
FIXED: Final = {"BIGCRAWL_FETCHES_MIN": 0}


def main() -> int:
    """Run it; 0 when the adaptive limit lost less, brought as many pages, and cost nothing where there is no crowd.

    Slow hosts are no crowd: with them it must bring most of the pages of a fixed limit, the time included in which it
    rises.
    """
    options = _parser().parse_args()
    enter_own_namespace("benchmarks.crowd")
    work = Path(tempfile.mkdtemp(prefix="bigcrawl-crowd-"))
    settings = {"CONCURRENT_REQUESTS": options.concurrency, "DOWNLOAD_TIMEOUT": options.timeout}
    phases = [(speed, options.seconds) for speed in (options.wide, options.narrow, options.wide)]
    try:
        fixed = crawl(work / "fixed", phases, options.latency, {**settings, **FIXED})
        adapted = crawl(work / "adapted", phases, options.latency, settings)
        say("\n".join(aligned([_HEADER, *map(_row, fixed, adapted)])))
        has_helped = _compare(fixed, adapted)
        is_patient = _slow(work)
        is_free = _uncrowded(work, settings)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0 if has_helped and is_patient and is_free else 1


_HEADER: Final = [
    *("s", "Mbit/s", "fixed: limit", "pages/s", "median s", "lost"),
    *("adaptive: limit", "pages/s", "median s", "lost", ""),
]


def _row(fixed: Window, adapted: Window) -> list[str]:
    cells = [f"{fixed.from_s}-{fixed.from_s + WINDOW_S}", f"{fixed.mbit_per_s:g}"]
    for side in (fixed, adapted):
        cells += [f"{side.limit:.0f}", f"{side.pages_per_s:.1f}", f"{side.took_ms / 1000:.2f}", str(side.lost)]
    return [*cells, ""]


def _compare(fixed: Sequence[Window], adapted: Sequence[Window]) -> bool:
    pages = [sum(window.pages_per_s for window in side) * WINDOW_S for side in (fixed, adapted)]
    lost = [sum(window.lost for window in side) for side in (fixed, adapted)]
    say(f"pages: {pages[0]:.0f} fixed, {pages[1]:.0f} adaptive; ran into their timeout: {lost[0]} and {lost[1]}")
    return pages[1] >= WANTED * pages[0] and lost[1] <= lost[0]


def _slow(work: Path) -> bool:
    """Whether hosts that all take 8 s are soon asked as many at a time as is allowed."""
    settings = {
        "CONCURRENT_REQUESTS": SLOW_FETCHES,
        "BIGCRAWL_IN_PROCESS_MAX": 4 * SLOW_FETCHES,
        "DOWNLOAD_TIMEOUT": 60,
    }
    phases = [(0.0, SLOW_S)]
    fixed = crawl(work / "slow-fixed", phases, SLOW_MS, {**settings, **FIXED}, SLOW_HOSTS)
    adapted = crawl(work / "slow-adapted", phases, SLOW_MS, settings, SLOW_HOSTS)
    say("\n".join(aligned([_HEADER, *map(_row, fixed, adapted)])))
    pages = [sum(window.pages_per_s for window in side) * WINDOW_S for side in (fixed, adapted)]
    say(f"slow hosts, pages: {pages[0]:.0f} fixed, {pages[1]:.0f} adaptive; wanted: {SLOW_WANTED:.0%} of them")
    return pages[1] >= SLOW_WANTED * pages[0]


def _uncrowded(work: Path, settings: dict[str, Any]) -> bool:
    """Whether both do as much for the CPU they have, where the link takes everything and hosts answer at once."""
    rates: dict[str, list[Rate]] = {"fixed": [], "adaptive": []}
    for number in range(_ROUNDS):  # in turn: the machine is not the same from minute to minute
        for name, more in (("fixed", FIXED), ("adaptive", {})):
            rates[name].append(crawl_freely(work / f"{name}{number}", _FREE_S, {**settings, **more}))
    for name, found in rates.items():
        say(f"no crowd, {name:9}{median(each.pages_per_s for each in found):7.1f} pages/s")
    fixed, adapted = (median(each.pages_per_cpu_s for each in found) for found in rates.values())
    say(f"no crowd, pages for a second of CPU: adaptive {adapted:.0f}, fixed {fixed:.0f}; wanted: {WANTED:.0%} of it")
    return adapted >= WANTED * fixed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crowd", description=__doc__)
    add = parser.add_argument
    add("--seconds", type=float, default=20, help="of each speed of the link (default: %(default)s)")
    add("--wide", type=float, default=20, metavar="MBIT", help="Mbit/s (default: %(default)s)")
    add("--narrow", type=float, default=5, metavar="MBIT", help="Mbit/s (default: %(default)s)")
    add("--concurrency", type=int, default=64, help="CONCURRENT_REQUESTS (default: %(default)s)")
    add("--timeout", type=float, default=3, metavar="S", help="DOWNLOAD_TIMEOUT (default: %(default)s)")
    add("--latency", type=int, default=100, metavar="MS", help="of the hosts (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
