"""`python -m benchmarks.spam`. Options: --help."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks.crawl.machine import describe_machine
from benchmarks.spam.report import account_table, curve_table, homes_table, load_table, say, spam_table, times_table
from benchmarks.spam.run import DIRECTORIES, SIDES, Plan, Run, run_side
from benchmarks.spam.web import WebPlan

TABLES = (times_table, homes_table, spam_table, account_table, load_table, curve_table)


def main() -> int:
    """Run the benchmark; 0, or 1 when a crawl failed."""
    parser = _parser()
    options = parser.parse_args()
    if not options.homes and DIRECTORIES in {SIDES[name].units for name in options.sides}:
        parser.error("budgets for directories need shared domains: --homes 4")
    web = WebPlan(
        options.seed,
        options.hosts,
        options.pages,
        options.farms,
        round(options.latency * 1000),
        options.seeds,
        options.homes,
    )
    plan = Plan(
        web,
        options.concurrency,
        options.limit,
        dict(pair.split("=", 1) for pair in options.set),
        _command(options.prefix),
    )
    directory = Path(tempfile.mkdtemp(prefix="bigcrawl-spam-"))
    kept = options.keep
    runs: dict[str, Run] = {}
    reachable = web.reachable()
    say(f"{len(reachable):,} legitimate URLs can be reached from {web.seeds} seeds")
    status = 0
    try:
        for name in options.sides:
            runs[name] = run_side(SIDES[name], plan, reachable, directory / name)
            _note(name, runs, options)
    except RuntimeError as error:
        say(f"spam: {error}")
        kept, status = True, 1
    finally:
        say(f"kept: {directory}") if kept else shutil.rmtree(directory)
    if runs:
        for lines in filter(None, (table(runs) for table in TABLES)):
            say("", *lines)
    return status


def _note(name: str, runs: dict[str, Run], options: argparse.Namespace) -> None:
    """Tell of a side that is done, and write all there is: the next one may fail."""
    timeline = runs[name].timeline
    counts = f"{timeline.legit:,} legitimate pages and {timeline.spam:,} of spam in {timeline.seconds:.0f} s"
    say(f"{SIDES[name].title}: {counts}; {runs[name].ended}")
    if runs[name].stalled_s:
        say(f"! the machine was busy with something else for {runs[name].stalled_s:.0f} s")
    if options.json:
        told = {
            "machine": describe_machine(),
            "options": {key: value for key, value in vars(options).items() if key != "json"},
            "runs": {side: asdict(run) for side, run in runs.items()},
        }
        options.json.write_text(json.dumps(told, indent=1) + "\n")


def _command(text: str) -> tuple[str, ...]:
    """The words of a command, its program by its path; empty for none."""
    words = text.split()
    if not words:
        return ()
    program = shutil.which(words[0])
    if program is None:
        raise SystemExit(f"--prefix is {text!r}; there is no program {words[0]}")
    return (program, *words[1:])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spam", description=__doc__)
    add = parser.add_argument
    add("--sides", nargs="+", choices=SIDES, default=["clean", "star", "bfs"], help="the first is the baseline")
    add("--seed", type=int, default=7, help="which web; default 7")
    add("--hosts", type=int, default=1_000, help="legitimate ones, 3.5 a PLD; default 1,000")
    add("--pages", type=int, default=2_000, help="of all legitimate hosts; default 2,000")
    add("--seeds", type=int, default=50, help="hosts whose first page the crawl starts with; default 50")
    add("--farms", type=int, default=4, help="PLDs of spam; default 4")
    add("--homes", type=int, default=0, help="shared domains with home directories, and spam in others; default 0")
    add("--latency", type=float, default=0.05, metavar="S", help="of every answer; default 0.05")
    add("--concurrency", type=int, default=8, help="requests at a time; default 8")
    add("--limit", type=float, default=150, metavar="S", help="when a crawl is stopped; default 150")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a Scrapy setting for all sides")
    add("--prefix", default="", metavar="COMMAND", help='runs crawl and server, e.g. "nice -n 10"')
    add("--json", type=Path, metavar="FILE", help="write all figures there")
    add("--keep", action="store_true", help="keep logs and state, and say where they are")
    return parser


if __name__ == "__main__":
    sys.exit(main())
