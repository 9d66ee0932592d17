"""`python -m benchmarks.frontier`: what `make bench-frontier` runs. Options: --help."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.crawl import procfs
from benchmarks.crawl.machine import describe_machine
from benchmarks.crawl.profiler import Sampler
from benchmarks.crawl.report import aligned, function_lines, say, stage_table
from benchmarks.crawl.stages import stage_costs
from benchmarks.frontier import ours, peers

# What is promised: at any number of hosts, Redis' CPU apart.
US_A_PAGE_MAX: Final = 50.0
ROUND_TRIPS_MAX: Final = 2.0  # for 32 pages
BATCH: Final = 32
_HEADS: Final = (
    *("hosts", "bigcrawl us/page", "its Redis", "trips/32 pages"),
    *("Scrapy pop us", "push", "scrapy-redis pop us", "its Redis", "push"),
)


def main() -> int:
    """Measure, print the table, write it; 1 when a promise is not kept, with --hold."""
    options = _parser().parse_args()
    procfs.keep_to(procfs.CRAWLER_CORE)
    with procfs.awake():
        if options.profile:
            for hosts in options.hosts:
                _profile(hosts, options.rounds * options.pages)
            return 0
        rows = [_measured(hosts, options.pages, options.rounds) for hosts in options.hosts]
    say(*aligned([_HEADS, *(_cells(row) for row in rows)]))
    missed = [text for row in rows for text in _missed(row)]
    say(*(f"! {text}" for text in missed))
    options.json.write_text(
        json.dumps({"machine": describe_machine(), "rows": rows, "missed": missed}, indent=1) + "\n"
    )
    say(f"written: {options.json}")
    return 1 if missed and options.hold else 0


def _measured(hosts: int, pages: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bigcrawl-bench-") as directory:
        found = ours.measure(hosts, pages, rounds, Path(directory))
    # What the code costs; the other rounds are what the machine did besides.
    mine = min(found)
    scrapy_pop, scrapy_push = peers.measure_scrapy(hosts, pages)
    redis_pop, redis_push = peers.measure_scrapy_redis(hosts, pages)
    row: dict[str, Any] = {
        "hosts": hosts,
        "bigcrawl": mine._asdict(),
        "rounds": [cost._asdict() for cost in found],
        "scrapy": {"pop": scrapy_pop._asdict(), "push": scrapy_push._asdict()},
        "scrapy-redis": {"pop": redis_pop._asdict(), "push": redis_push._asdict()},
    }
    rounded = ", ".join(f"{cost.client_us:.0f}" for cost in found)
    say(f"{hosts:,} hosts: {rounded} us a page, {mine.round_trips * BATCH:.1f} round trips for {BATCH} pages")
    return row


def _profile(hosts: int, pages: int) -> None:
    """Say where bigcrawl's share goes; no figure of it is to be quoted."""
    sampler = Sampler()
    with tempfile.TemporaryDirectory(prefix="bigcrawl-bench-") as directory:
        ours.measure(hosts, pages, 1, Path(directory), sampler)
    costs = stage_costs(sampler.as_profile(pages))
    say(f"{hosts:,} hosts", stage_table(costs, None), *function_lines(costs))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    mine, scrapy, shared = row["bigcrawl"], row["scrapy"], row["scrapy-redis"]
    return (
        f"{row['hosts']:,}",
        *(f"{mine[name]:.0f}" for name in ("client_us", "redis_us")),
        f"{mine['round_trips'] * BATCH:.1f}",
        *(f"{scrapy[call]['client_us']:.0f}" for call in ("pop", "push")),
        *(f"{shared['pop'][name]:.0f}" for name in ("client_us", "redis_us")),
        f"{shared['push']['client_us']:.0f}",
    )


def _missed(row: dict[str, Any]) -> list[str]:
    """The promises that a row does not keep."""
    mine = row["bigcrawl"]
    missed = []
    if mine["client_us"] > US_A_PAGE_MAX:
        missed.append(f"{row['hosts']:,} hosts: {mine['client_us']:.0f} us a page, not {US_A_PAGE_MAX:.0f}")
    trips = mine["round_trips"] * BATCH
    if trips > ROUND_TRIPS_MAX:
        missed.append(f"{row['hosts']:,} hosts: {trips:.1f} round trips for {BATCH} pages, not {ROUND_TRIPS_MAX:.0f}")
    return missed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frontier", description=__doc__)
    add = parser.add_argument
    add("--hosts", type=int, nargs="+", default=[100, 1_000, 10_000, 100_000], help="default 100 to 100,000")
    add("--pages", type=int, default=10_000, help="scheduled in each round; default 10,000")
    add("--rounds", type=int, default=12, help="of bigcrawl's figure; the least counts; default 12")
    add("--profile", action="store_true", help="only where bigcrawl's CPU goes")
    add("--hold", action="store_true", help="exit 1 when a promise is not kept")
    add("--json", type=Path, default=Path("bench-frontier.json"), metavar="FILE", help="default bench-frontier.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
