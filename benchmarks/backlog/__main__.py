"""`python -m benchmarks.backlog`: what `make bench-backlog` runs. Options: --help."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.backlog.state import PARTITIONS, fill
from benchmarks.crawl.report import aligned, say
from tests.support.redis_servers.redis_server import PrivateRedis

CRAWL: Final = "bench"
OPEN_S_MAX: Final = 10.0
NODE_MB_MAX: Final = 600
REDIS_MB_MAX: Final = 512
GROWTH_MAX: Final = 0.1
OPEN_S_LONGEST: Final = 120.0
EARLY_S: Final = 360.0  # by then the caches of 100,000 names are full; a run that ends sooner says nothing of growth
MINUTE_S: Final = 60.0  # memory goes up and down with the batches: a minute's median counts
SAID_EVERY: Final = 30
_HEADS: Final = ("", "open after", "pages/s", "new URLs/s offered", "node MB early", "late", "Redis MB early", "late")


class Run(NamedTuple):
    """A node from its start until it was killed; `looks` are a second apart."""

    open_s: float
    looks: list[Look]

    def early(self) -> Look:
        """What it was in the minute after nothing was new to it; in the first one of a run that ended sooner."""
        since_s = EARLY_S if self.looks[-1].at_s >= EARLY_S + MINUTE_S else 0.0
        return _typical([look for look in self.looks if since_s <= look.at_s < since_s + MINUTE_S])

    def late(self) -> Look:
        """What it was in its last minute."""
        return _typical([look for look in self.looks if look.at_s > self.looks[-1].at_s - MINUTE_S])


class Look(NamedTuple):
    """One second of a node."""

    at_s: float
    pages: int
    offered: int
    node_mb: float
    redis_mb: float


def _typical(looks: list[Look]) -> Look:
    """The last of some looks, with the median of their memory."""
    node_mb, redis_mb = (statistics.median(look[at] for look in looks) for at in (3, 4))
    return looks[-1]._replace(node_mb=node_mb, redis_mb=redis_mb)


def main() -> int:
    """Fill, run, kill, open again; 1 when a promise is not kept, with --hold."""
    options = _parser().parse_args()
    if options.keep is None:
        with tempfile.TemporaryDirectory(prefix="bigcrawl-backlog-") as directory:
            missed = _measure(Path(directory), options)
    else:
        missed = _measure(options.keep, options)
    return 1 if missed and options.hold else 0


def _measure(state: Path, options: argparse.Namespace) -> list[str]:
    """Print the table and what it lacks; returns that."""
    made = state / "made"
    if not made.exists():
        began_s = time.monotonic()
        fill_all(made, int(options.seen), int(options.waiting))
        disk = sum(path.stat().st_size for path in made.rglob("*") if path.is_file())
        took_s = time.monotonic() - began_s
        say(f"{options.seen:.3g} seen, {options.waiting:.3g} waiting: {disk / 1e9:.1f} GB, made in {took_s:.0f} s")
    # No owner writes to files that it takes over, so that links will do for a copy.
    run = state / "run"
    shutil.copytree(made, run / CRAWL, copy_function=os.link)
    try:
        with PrivateRedis() as redis:
            first = _opened_and_run(redis, run, options.seconds)
            say("killed with SIGKILL")
            again = _opened_and_run(redis, run, options.seconds_after)
    finally:
        shutil.rmtree(run)
    missed = [*_missed(first), *_missed(again)]
    say(*aligned([_HEADS, _row("with a new Redis", first), _row("after kill -9", again)]))
    say(*(f"! {text}" for text in missed))
    return missed


def fill_all(directory: Path, seen: int, waiting: int) -> None:
    """Write all partitions of a crawl with so many URLs seen, and so many that wait, with two processes."""
    directory.mkdir(parents=True)
    with ProcessPoolExecutor(2) as pool:
        work = partial(_fill_one, directory, seen, waiting)
        for number in pool.map(work, range(PARTITIONS)):
            if (number + 1) % SAID_EVERY == 0:
                say(f"{number + 1} of {PARTITIONS} partitions are filled")


def _fill_one(directory: Path, seen: int, waiting: int, number: int) -> int:
    fill(directory / f"p{number:04d}", number, seen, waiting)
    return number


def _opened_and_run(redis: PrivateRedis, state: Path, seconds: float) -> Run:
    words = (sys.executable, "-m", "benchmarks.backlog.node", redis.url, str(state))
    began_s = time.monotonic()
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        stuck = threading.Timer(OPEN_S_LONGEST + seconds, process.kill)
        stuck.start()
        try:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "open":
                raise SystemExit(f"the node ended with status {process.wait()}")
            open_s = time.monotonic() - began_s
            looks: list[Look] = []
            while not looks or looks[-1].at_s < seconds:
                told = json.loads(process.stdout.readline())
                redis_mb = redis.client.info("memory")["used_memory"] / 1e6
                at_s = time.monotonic() - began_s - open_s
                looks.append(Look(at_s, told["pages"], told["offered"], told["rss"] / 1e6, redis_mb))
                if len(looks) % SAID_EVERY == 0:
                    say("{:5.0f} s {:,} pages {:,} new URLs, node {:.0f} MB, Redis {:.0f} MB".format(*looks[-1]))
        finally:
            stuck.cancel()
            process.kill()
    return Run(open_s, looks)


def _row(name: str, run: Run) -> tuple[str, ...]:
    first, last, early, late = run.looks[0], run.looks[-1], run.early(), run.late()
    return (
        name,
        f"{run.open_s:.1f} s",
        *(f"{(last[at] - first[at]) / (last.at_s - first.at_s):,.0f}" for at in (1, 2)),
        *(f"{look[at]:.0f}" for at in (3, 4) for look in (early, late)),
    )


def _missed(run: Run) -> list[str]:
    """The promises that a run does not keep."""
    missed = []
    if run.open_s > OPEN_S_MAX:
        missed.append(f"open after {run.open_s:.1f} s, not {OPEN_S_MAX:.0f}")
    for name, at, most in (("node", 3, NODE_MB_MAX), ("Redis", 4, REDIS_MB_MAX)):
        peak, early, late = max(look[at] for look in run.looks), run.early()[at], run.late()[at]
        if peak > most:
            missed.append(f"{name}: {peak:.0f} MB, not {most}")
        if run.early().at_s >= EARLY_S and late > early * (1 + GROWTH_MAX):
            missed.append(f"{name}: from {early:.0f} to {late:.0f} MB is not flat")
    return missed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backlog", description=__doc__)
    add = parser.add_argument
    add("--seen", type=float, default=1e9, help="URLs seen before the crawl begins; default 1e9")
    add("--waiting", type=float, default=1e8, help="URLs that wait then; default 1e8")
    add("--seconds", type=float, default=900, help="of the first run; default 900")
    add("--seconds-after", type=float, default=60, help="of the run after kill -9; default 60")
    add("--keep", type=Path, metavar="DIR", help="where the state is made, 12 GB, and stays; one that is there is used")
    add("--hold", action="store_true", help="exit 1 when a promise is not kept")
    return parser


if __name__ == "__main__":
    sys.exit(main())
