"""Do 30 % of hosts that are dead, slow, refusing or lying leave the healthy ones 90 % of the rate they have alone?

Two crawls of one machine, one after the other: of the healthy hosts alone, and with the bad ones. Printed are pages and
robots.txt of healthy hosts a second, the ratio of both together (a crawl of so many hosts begins with robots.txt),
and how many fetches of bad hosts were open at a time: while hosts are met for the first time, and when all have been.
At first a crawler whose core is full cannot keep 90 %: to meet a bad host costs as much as to meet a good one, and
nobody knows before which it is. What is promised is judged when that is over. It wants an idle machine of two cores.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.hostile.run import Window, crawl
from benchmarks.hostile.web import WebPlan
from benchmarks.spam.report import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.hostile.figures import Figures

WANTED = 0.9


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both crawls and print; 1 when the ratio is below what is wanted."""
    options = _parser().parse_args(arguments)
    plan = WebPlan(options.seed, options.hosts, options.bad, options.bad_urls, round(options.latency * 1000))
    settings: dict[str, Any] = {
        "CONCURRENT_REQUESTS": options.concurrency,
        "DOWNLOAD_TIMEOUT": options.timeout,
        **dict(each.partition("=")[::2] for each in options.set),
    }
    windows = {
        "while hosts are met": Window(options.warm_up, options.warm_up + options.seconds),
        "when all have been met": Window(options.settled, options.settled + options.settled_seconds),
    }
    work = Path(tempfile.mkdtemp(prefix="bigcrawl-hostile-"))
    try:
        alone = crawl(plan, work / "alone", settings, list(windows.values()), bad=False)
        among = crawl(plan, work / "among", settings, list(windows.values()), bad=True)
    finally:
        if options.keep:
            say(f"kept: {work}")
        else:
            shutil.rmtree(work, ignore_errors=True)
    say(f"{plan.hosts} hosts, {plan.bad} of them bad; {options.concurrency} fetches at a time")
    ratios = [_compare(name, *each) for name, *each in zip(windows, alone, among, strict=True)]
    say(f"wanted, when all have been met: {100 * WANTED:.0f} %")
    return 0 if ratios[-1] >= WANTED else 1


def _compare(name: str, alone: Figures, among: Figures) -> float:
    """Say what a window of both crawls was like, and return the ratio of healthy hosts' rates."""
    ratio = among.requests_per_s / alone.requests_per_s if alone.requests_per_s else 0.0
    requests = ", ".join(f"{kind} {count}" for kind, count in sorted(among.bad.items()))
    say(
        f"{name}: healthy hosts are crawled at {100 * ratio:.1f} % of the rate they have alone",
        f"  alone      {_line(alone)}",
        f"  with bad   {_line(among)}",
        f"  bad hosts received: {requests}; {among.bad_slots:.0f} fetches open, those of dead hosts apart",
    )
    return ratio


def _line(figures: Figures) -> str:
    robots_per_s = figures.requests_per_s - figures.pages_per_s
    cpu_percent = 100 * figures.cpu_s / figures.seconds
    return f"{figures.pages_per_s:7.1f} pages/s, {robots_per_s:7.1f} robots.txt/s of theirs, {cpu_percent:.0f} % CPU"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile", description=__doc__)
    add = parser.add_argument
    add("--hosts", type=int, default=100_000, help="healthy and bad ones; default 100,000")
    add("--bad", type=int, default=30, metavar="PERCENT", help="of the hosts; default 30")
    add("--bad-urls", type=int, default=3, help="seeds of each bad host; default 3")
    add("--latency", type=float, default=0.0, metavar="S", help="of healthy hosts; default 0")
    add("--concurrency", type=int, default=1_000, help="CONCURRENT_REQUESTS; default 1,000")
    add("--timeout", type=float, default=10, metavar="S", help="DOWNLOAD_TIMEOUT; default 10")
    add("--warm-up", type=float, default=60, metavar="S", help="not counted; default 60")
    add("--seconds", type=float, default=90, help="counted then; default 90")
    add("--settled", type=float, default=1_200, metavar="S", help="when all hosts have been met; default 1,200")
    add("--settled-seconds", type=float, default=90, metavar="S", help="counted then; default 90")
    add("--seed", type=int, default=7)
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a Scrapy setting for both crawls")
    add("--keep", action="store_true", help="keep logs and state, and say where they are")
    return parser


if __name__ == "__main__":
    sys.exit(main())
