"""`python -m benchmarks.one_site`: what `make bench-one_site` runs: few hosts, as somebody who tries a crawler has.

bigcrawl and stock Scrapy crawl the same hosts in turns, so that what disturbs the machine disturbs both. Without a
delay their pages a second are compared. With one, what counts is how much of it is lost: both counted from the origin's
log, the time from one answer's end to the next request is compared with the delay. A client that only asks and sleeps
shows how much of that is the machine's. Options: --help.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.crawl import procfs
from benchmarks.crawl.bare_client import ask_again_and_again
from benchmarks.crawl.origin import SAMPLE_PAGES
from benchmarks.crawl.procfs import ORIGIN_CORE
from benchmarks.crawl.report import aligned, say
from benchmarks.crawl.run import Plan, run_side
from bigcrawl.simweb.serve.access_log import read_log

if TYPE_CHECKING:
    from collections.abc import Sequence

PEER: Final = "stock"
STARTING_MS: Final = 5_000  # of a run, in which the crawl finds its pace


class Case(NamedTuple):
    """What one row of the table crawls."""

    hosts: int
    connections: int
    delay_s: float = 0

    @property
    def title(self) -> str:
        return f"{self.hosts} x {self.connections}, {self.delay_s} s"


CASES: Final = (
    *(Case(hosts, connections) for hosts in (1, 5) for connections in (1, 2, 8)),
    *(Case(hosts, 1, delay_s) for hosts in (1, 5) for delay_s in (0.1, 1.0)),
)


class Found(NamedTuple):
    """What a run of one side came to."""

    pages_per_s: float
    cpu_ms: float
    kept: float  # of what the delay allows; 0 without a delay
    share: float  # of its core


def main() -> int:
    """Run the cases; 0 when it was as fast as Scrapy in each without a delay, and kept 99 % of what a delay allows.

    That is what the client that only sleeps kept in the same rounds.
    """
    options = _parser().parse_args()
    procfs.keep_to(ORIGIN_CORE)
    sides = "bigcrawl", "Scrapy", "ratio", "CPU ms", "Scrapy's", "of its core"
    heads = "hosts x connections, delay", *sides, "kept", "bare client kept"
    rows, missed = [[*heads]], 0
    for case in [case for case in CASES if not options.only or case.title in options.only]:
        ours, theirs = _in_turns(case, options.rounds, options.seconds, _pairs(options.set))
        ratio = statistics.median(our.pages_per_s / their.pages_per_s for our, their in zip(ours, theirs, strict=True))
        kept = statistics.median(found.kept for found in ours)
        share = statistics.median(found.share for found in ours)
        bare = statistics.median(_bare(case, options.seconds) for _ in range(options.rounds)) if case.delay_s else 0
        missed += kept < 0.99 * bare if case.delay_s else ratio < 1
        medians = [statistics.median(found[i] for found in side) for i in (0, 1) for side in (ours, theirs)]
        speeds, costs = [f"{speed:.1f}" for speed in medians[:2]], [f"{cost:.2f}" for cost in medians[2:]]
        of_delay = [f"{of_it:.1%}" if case.delay_s else "" for of_it in (kept, bare)]
        rows.append([case.title, *speeds, f"{ratio:.2f}", *costs, f"{share:.0%}", *of_delay])
        say("  ".join(rows[-1]))
    say("", "\n".join(aligned(rows)))
    return int(missed > 0)


def _in_turns(case: Case, rounds: int, seconds: float, more: dict[str, str]) -> tuple[list[Found], list[Found]]:
    found: dict[str, list[Found]] = {"bigcrawl": [], PEER: []}
    for number in range(rounds):
        for side in ("bigcrawl", PEER) if number % 2 == 0 else (PEER, "bigcrawl"):
            found[side].append(_run(side, case, seconds, more))
    return found["bigcrawl"], found[PEER]


def _run(side: str, case: Case, seconds: float, more: dict[str, str]) -> Found:
    ours = {"BIGCRAWL_HOST_DELAY": case.delay_s, "BIGCRAWL_HOST_CONNECTIONS": case.connections, **more}
    theirs = {"DOWNLOAD_DELAY": case.delay_s, "CONCURRENT_REQUESTS_PER_DOMAIN": case.connections}
    theirs["RANDOMIZE_DOWNLOAD_DELAY"] = False
    common: dict[str, Any] = {"CONCURRENT_REQUESTS": 16}
    directory = Path(tempfile.mkdtemp(prefix="bigcrawl-one-site-"))
    try:
        plan = Plan(case.hosts, seconds, common | (theirs if side == PEER else ours), pages_before=SAMPLE_PAGES + 1)
        measurement = run_side(side, plan, directory / side).measurement
        kept = _kept(directory / side / "origin" / "access.log", case) if case.delay_s else 0.0
    finally:
        shutil.rmtree(directory)
    return Found(measurement.pages_per_s, measurement.cpu_ms, kept, measurement.crawler_share)


def _bare(case: Case, seconds: float) -> float:
    with tempfile.TemporaryDirectory(prefix="bigcrawl-one-site-") as directory:
        ask_again_and_again(Path(directory), case.hosts, case.delay_s, seconds + STARTING_MS / 1000)
        return _kept(Path(directory) / "access.log", case, lines_before=0)


def _kept(log: Path, case: Case, lines_before: int = SAMPLE_PAGES) -> float:
    """The share of the pages that the delay allows: the delay and the answers' own time, of all the time.

    The origin logs times rounded down to milliseconds.
    """
    by_host: dict[str, list[tuple[int, int]]] = {}
    lines = sorted(read_log(log))[lines_before:]
    for line in lines:
        by_host.setdefault(line.host, []).append((line.start_ms, line.end_ms))
    lost_ms = all_ms = 0.0
    for times in by_host.values():
        for (_, ended_ms), (start_ms, next_end_ms) in pairwise(times):
            if start_ms < lines[0].start_ms + STARTING_MS:
                continue
            lost_ms += start_ms - ended_ms - 1000 * case.delay_s
            all_ms += next_end_ms - ended_ms
    return 1 - lost_ms / all_ms if all_ms else 0.0


def _pairs(options: Sequence[str]) -> dict[str, str]:
    return dict(option.split("=", 1) for option in options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.one_site", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=2, help="default 2")
    add("--seconds", type=float, default=20, help="measured of each run; default 20")
    add("--only", action="append", default=[], metavar="CASE", help="such as '1 x 8, 0 s'; default: all")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a Scrapy setting for bigcrawl's side")
    return parser


if __name__ == "__main__":
    sys.exit(main())
