"""`python -m benchmarks.crawl`: what `make bench` runs. Options: --help."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.crawl import procfs
from benchmarks.crawl.figures import spread
from benchmarks.crawl.machine import describe_machine
from benchmarks.crawl.procfs import CRAWLER_CORE, ORIGIN_CORE
from benchmarks.crawl.report import function_lines, ratio_lines, say, side_table, stage_table
from benchmarks.crawl.run import Plan, Run, run_side
from benchmarks.crawl.sides import FIRST_FETCH_S, ROUND_TRIPS, SIDES
from benchmarks.crawl.stages import StageCosts, stage_costs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.crawl.figures import Measurement

PROFILED: Final = "bigcrawl"
BATCH: Final = 32  # pages; how round trips are told
BUSY_SHARE_MAX: Final = 0.10
BUSY_LOOK_S: Final = 1.0


def main() -> int:
    """Run the benchmark; 0, or 1 when a side could not be measured or did not do the work that is compared."""
    options = _parser().parse_args()
    plan = Plan(options.hosts, options.seconds, dict(pair.split("=", 1) for pair in options.set))
    # The harness is light, but it shall not be on the crawler's core.
    procfs.keep_to(ORIGIN_CORE)
    busy = _busy_cores()
    for warning in busy:
        say(f"! {warning}")
    directory = Path(tempfile.mkdtemp(prefix="bigcrawl-bench-"))
    kept = options.keep
    try:
        return 0 if _bench(options, plan, directory, busy) else 1
    except (RuntimeError, ValueError) as error:
        say(f"bench: {error}")
        kept = True
        return 1
    finally:
        if kept:
            say(f"kept: {directory}")
        else:
            shutil.rmtree(directory)


def _bench(options: argparse.Namespace, plan: Plan, directory: Path, busy: list[str]) -> bool:
    """All that is asked for; whether every side did the work that is compared."""
    runs: dict[str, list[Run]] = {}
    for number in range(1, options.rounds + 1) if not options.profile else ():
        for name in options.sides:
            run = run_side(name, plan, directory / f"{number}-{name}")
            runs.setdefault(name, []).append(run)
            _tell(number, run)
            if not options.keep:
                shutil.rmtree(directory / f"{number}-{name}")
    measured = {name: [run.measurement for run in found] for name, found in runs.items()}
    if measured:
        say("", side_table(measured), "", *ratio_lines(measured), *_round_trips(runs.get(PROFILED, [])))
    stages = {}
    for name in options.sides if options.profile else [name for name in options.sides if name == PROFILED]:
        stages[name] = _profile(name, plan, directory, options.json, measured.get(name, []))
    told = {
        "machine": describe_machine(),
        "options": {name: value for name, value in vars(options).items() if name != "json"},
        "busy": busy,
        "runs": {name: [_run_as_json(run) for run in found] for name, found in runs.items()},
        "stages": {name: asdict(costs) for name, costs in stages.items()},
    }
    options.json.write_text(json.dumps(told, indent=1) + "\n")
    say(f"written: {options.json}")
    return not any(run.faults for found in runs.values() for run in found)


def _profile(name: str, plan: Plan, directory: Path, json_file: Path, measured: list[Measurement]) -> StageCosts:
    """One more run, with the sampler in it; its functions go into a file beside the JSON."""
    run = run_side(name, plan, directory / f"profile-{name}", profile=True)
    assert run.profile is not None
    costs = stage_costs(run.profile)
    cpu_ms = spread(measured, lambda found: found.crawler_ms).median if measured else None
    say("", f"where the CPU of {SIDES[name].title} goes", stage_table(costs, cpu_ms))
    file = json_file.with_name(f"{json_file.stem}-functions-{name}.txt")
    file.write_text("\n".join(function_lines(costs)) + "\n")
    say(f"functions: {file}")
    return costs


def _tell(number: int, run: Run) -> None:
    found = run.measurement
    marks = "".join(f"\n  ! {text}" for text in (*run.faults, *found.trouble))
    speed = f"{found.pages_per_s:.0f} pages/s, {found.cpu_ms:.2f} ms of CPU a page"
    first = f"first fetch {run.stats[FIRST_FETCH_S]:.2f} s after the crawler was made"
    say(f"round {number}, {SIDES[found.side].title}: {speed}, {first}{marks}")


def _round_trips(runs: list[Run]) -> list[str]:
    """How often bigcrawl went to Redis, over whole crawls."""
    pages = sum(run.served.pages for run in runs)
    trips = sum(run.stats.get(ROUND_TRIPS, 0) for run in runs)
    return [f"bigcrawl: {BATCH * trips / pages:.1f} round trips to Redis for {BATCH} pages"] if pages else []


def _run_as_json(run: Run) -> Mapping[str, Any]:
    return {**asdict(run.measurement), "cpu_ms": run.measurement.cpu_ms, "faults": run.faults, "stats": run.stats}


def _busy_cores() -> list[str]:
    """Which of the cores somebody else uses, before anything of ours runs."""
    before = [procfs.core_busy_seconds(core) for core in (CRAWLER_CORE, ORIGIN_CORE)]
    time.sleep(BUSY_LOOK_S)
    after = [procfs.core_busy_seconds(core) for core in (CRAWLER_CORE, ORIGIN_CORE)]
    shares = [(end - start) / BUSY_LOOK_S for start, end in zip(before, after, strict=True)]
    return [
        f"core {core} is {share:.0%} busy before the start: not an idle machine"
        for core, share in zip((CRAWLER_CORE, ORIGIN_CORE), shares, strict=True)
        if share > BUSY_SHARE_MAX
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crawl", description=__doc__)
    add = parser.add_argument
    add("--sides", nargs="+", choices=SIDES, default=list(SIDES), help="default: all")
    add("--rounds", type=int, default=3, help="default 3")
    add("--seconds", type=float, default=60, help="measured of each run; default 60")
    add("--hosts", type=int, default=1000, help="default 1,000")
    add("--profile", action="store_true", help="no measurement: only where the CPU of the sides goes")
    add("--json", type=Path, default=Path("bench.json"), metavar="FILE", help="default bench.json")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a Scrapy setting for all sides")
    add("--keep", action="store_true", help="keep logs, WARC files and state, and say where they are")
    return parser


if __name__ == "__main__":
    sys.exit(main())
