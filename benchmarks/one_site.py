"""`python -m benchmarks.one_site`: what `make bench-one_site` runs: few hosts, as somebody who tries a crawler has.

Without a delay bigcrawl and stock Scrapy crawl the same hosts in turns, so that what disturbs the machine disturbs
both, and their pages a second are compared. With a delay, what counts is how much of it is lost: by the origin's log,
the time from one answer's end to the next request is compared with the delay. No request makes up for a late one,
because none may come too soon: all that is late is lost. A client that only asks and sleeps shows how much of that is
the machine's. Options: --help.
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
from bigcrawl_simweb.serve.access_log import read_log

if TYPE_CHECKING:
    from collections.abc import Sequence

PEER: Final = "stock"
STARTING_MS: Final = 5_000  # of a run, in which the crawl finds its pace
KEPT_LEAST: Final = 0.99  # of what a delay allows
STARTS_LEAST: Final = 60  # of a run, that are measured
MANY: Final = 8
RATIO_LEAST: Final = {MANY: 4.0}
"""Of Scrapy's pages/s, by connections: 300 on a core where Scrapy has 75. 1 with fewer connections."""


class Case(NamedTuple):
    """What one row of the table crawls."""

    hosts: int
    connections: int
    delay_s: float = 0

    @property
    def title(self) -> str:
        return f"{self.hosts} x {self.connections}, {self.delay_s} s"

    def seconds(self, least: float) -> float:
        """How long to measure for enough starts."""
        return max(least, (STARTS_LEAST + 1) * self.delay_s / self.hosts)


CASES: Final = (
    *(Case(hosts, connections) for hosts in (1, 5) for connections in (1, 2, MANY)),
    *(Case(hosts, 1, delay_s) for hosts in (1, 5) for delay_s in (0.1, 1.0)),
)


class Found(NamedTuple):
    """What a run of one side came to."""

    pages_per_s: float
    cpu_ms: float
    share: float  # of its core
    starts: tuple[Start, ...]


class Start(NamedTuple):
    """A request that follows an answer."""

    late_ms: float  # after the delay was over; the origin logs times rounded down to milliseconds
    cycle_ms: float  # from the end of the answer before to the end of its own


def main() -> int:
    """Run the cases; 0 when all bounds were kept."""
    options = _parser().parse_args()
    procfs.keep_to(ORIGIN_CORE)
    heads = "hosts x connections, delay", "bigcrawl", "Scrapy", "ratio", "CPU ms", "Scrapy's", "of its core"
    rows, missed = [[*heads, "kept", "late ms: mean", "median", "95 %", "bare client kept", "mean"]], 0
    for case in [case for case in CASES if not options.only or case.title in options.only]:
        row = _with_delay(case, options) if case.delay_s else _without_delay(case, options)
        missed += row.has_missed
        rows.append([case.title, *row.cells])
        say("  ".join(rows[-1]))
    say("", "\n".join(aligned(rows)))
    return int(missed > 0)


class Row(NamedTuple):
    """The cells of a case, and whether it missed its bound."""

    cells: list[str]
    has_missed: bool


def _without_delay(case: Case, options: argparse.Namespace) -> Row:
    found: dict[str, list[Found]] = {"bigcrawl": [], PEER: []}
    for number in range(options.rounds):
        for side in ("bigcrawl", PEER) if number % 2 == 0 else (PEER, "bigcrawl"):
            found[side].append(_run(side, case, options))
    ours, theirs = found["bigcrawl"], found[PEER]
    ratio = statistics.median(our.pages_per_s / their.pages_per_s for our, their in zip(ours, theirs, strict=True))
    speeds = [f"{statistics.median(each.pages_per_s for each in side):.1f}" for side in (ours, theirs)]
    costs = [f"{statistics.median(each.cpu_ms for each in side):.2f}" for side in (ours, theirs)]
    share = statistics.median(each.share for each in ours)
    cells = [*speeds, f"{ratio:.2f}", *costs, f"{share:.0%}", *[""] * 6]
    return Row(cells, ratio < RATIO_LEAST.get(case.connections, 1.0))


def _with_delay(case: Case, options: argparse.Namespace) -> Row:
    """All starts of all rounds count. The client that only sleeps is asked after each."""
    ours: list[Found] = []
    bare: list[Start] = []
    for _ in range(options.rounds):
        ours.append(_run("bigcrawl", case, options))
        bare += _bare(case, case.seconds(options.seconds))
    starts = [start for found in ours for start in found.starts]
    kept, late = _kept(starts), sorted(start.late_ms for start in starts)
    speed, cost, share = (statistics.median(figures) for figures in zip(*(each[:3] for each in ours), strict=True))
    lateness = [statistics.mean(late), statistics.median(late), late[len(late) * 95 // 100]]
    cells = [
        f"{speed:.2f}",
        "",
        "",
        f"{cost:.2f}",
        "",
        f"{share:.0%}",
        f"{kept:.2%}",
        *(f"{ms:.2f}" for ms in lateness),
    ]
    cells += [f"{_kept(bare):.2%}", f"{statistics.mean(start.late_ms for start in bare):.2f}"]
    return Row(cells, kept < KEPT_LEAST)


def _kept(starts: Sequence[Start]) -> float:
    """The share of the pages that the delay allows: the delay and the answers' own time, of all the time."""
    return 1 - sum(start.late_ms for start in starts) / sum(start.cycle_ms for start in starts)


def _run(side: str, case: Case, options: argparse.Namespace) -> Found:
    ours = {"BIGCRAWL_HOST_DELAY": case.delay_s, "BIGCRAWL_HOST_CONNECTIONS": case.connections, **_pairs(options.set)}
    theirs = {"CONCURRENT_REQUESTS_PER_DOMAIN": case.connections}
    common: dict[str, Any] = {"CONCURRENT_REQUESTS": 16}
    directory = Path(tempfile.mkdtemp(prefix="bigcrawl-one-site-"))
    try:
        settings = common | (theirs if side == PEER else ours)
        plan = Plan(case.hosts, case.seconds(options.seconds), settings, pages_before=SAMPLE_PAGES + 1)
        measurement = run_side(side, plan, directory / side).measurement
        starts = _starts(directory / side / "origin" / "access.log", case) if case.delay_s else []
    finally:
        shutil.rmtree(directory)
    return Found(measurement.pages_per_s, measurement.cpu_ms, measurement.crawler_share, tuple(starts))


def _bare(case: Case, seconds: float) -> list[Start]:
    with tempfile.TemporaryDirectory(prefix="bigcrawl-one-site-") as directory:
        ask_again_and_again(Path(directory), case.hosts, case.delay_s, seconds + STARTING_MS / 1000)
        return _starts(Path(directory) / "access.log", case, lines_before=0)


def _starts(log: Path, case: Case, lines_before: int = SAMPLE_PAGES) -> list[Start]:
    by_host: dict[str, list[tuple[int, int]]] = {}
    lines = sorted(read_log(log))[lines_before:]
    for line in lines:
        by_host.setdefault(line.host, []).append((line.start_ms, line.end_ms))
    return [
        Start(start_ms - ended_ms - 1000 * case.delay_s, next_end_ms - ended_ms)
        for times in by_host.values()
        for (_, ended_ms), (start_ms, next_end_ms) in pairwise(times)
        if start_ms >= lines[0].start_ms + STARTING_MS
    ]


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
