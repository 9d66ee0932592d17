"""`python -m benchmarks.sampling`: how often the intervals of sampled sizes cover the size of a web that is known.

Random walks over the links of a simulated web, as the spider `sample` makes them, with a hundred seeds of the dice. For
several numbers of fetches it prints in how many of the hundred the true number of URLs, and of pages, was in the
interval of 95 %, how wide that was, and how far off the estimates were on average. Then it crawls the same web with the
spider, and estimates from what that wrote. Promised are 90 of 100; the exit status is 1 if that was missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from benchmarks.crawl.report import aligned, say
from bigcrawl_sampling.estimating import WalkArrays
from bigcrawl_sampling.steps import WalkStep, read_steps
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.redis_servers.redis_server import PrivateRedis

if TYPE_CHECKING:
    from bigcrawl_sampling.estimating import Estimate, Interval
    from bigcrawl_simweb.model.web import Web

PROMISED: Final = 90  # of 100
RESTART: Final = 0.15
PORT: Final = 80  # of a web that is not served
SETTINGS: Final[dict[str, Any]] = {
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_PARTITIONS": 8,
    "BIGCRAWL_WARC_DIR": "",
    "TELNETCONSOLE_ENABLED": False,
}


class KnownLinks:
    """The links of a web as numbers, and what each URL answers; redirects lead on as a crawler is led."""

    def __init__(self, web: Web, port: int, seeds: list[str]) -> None:
        statuses = web.reachable(port, seeds)
        number_of = {url: number for number, url in enumerate(statuses)}
        links = [web.leads_to(url, port) for url in statuses]
        self.links = [tuple(dict.fromkeys(number_of.setdefault(v, len(number_of)) for v in of)) for of in links]
        self.statuses = list(statuses.values())
        self.seeds = [number_of[seed] for seed in seeds]
        self.urls = len(number_of)
        self.pages = self.statuses.count(200)

    def walks(self, fetches: int, dice: Random) -> list[WalkStep]:
        """Return the steps of walks that make so many fetches, or some more."""
        steps: list[WalkStep] = []
        walk = 0
        while len(steps) < fetches:
            at, number = dice.choice(self.seeds), 0
            while True:
                step = self._step(walk, number, at)
                steps.append(step)
                if not step.links or dice.random() < RESTART:
                    break
                at, number = dice.choice(step.links), number + 1
            walk += 1
        return steps

    def _step(self, walk: int, number: int, asked: int) -> WalkStep:
        found, hops = asked, 0
        while found < len(self.statuses) and 300 <= self.statuses[found] < 400 and hops < 5:
            found, hops = self.links[found][0], hops + 1
        answers = found < len(self.statuses) and self.statuses[found] == 200
        return WalkStep(walk, number, asked, found, answers and not hops, self.links[found] if answers else ())


def main() -> int:
    """Walk with each seed, print a table, then crawl."""
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="bigcrawl-sampling-") as directory, ExitStack() as stack:
        served = SimulatedWeb(Path(directory) / "web", hosts=options.hosts, pages=options.pages, seed=options.seed)
        stack.enter_context(served)
        known = KnownLinks(served.web, served.saved.port, served.seeds)
        say(f"{known.urls:,} URLs, {known.pages:,} of them pages")
        covered = [_covered(known, round(share * known.urls), options.times) for share in options.shares]
        say(*aligned([_HEAD, *(row for row, _ in covered)]))
        if not options.no_crawl:
            say(_told(_crawled(Path(directory), stack, served, options.walks)))
    least = min(count for _, count in covered) * 100 / options.times
    say(f"{least:.0f} of 100 at least{'' if least >= PROMISED else ': MISSED'}")
    return 0 if least >= PROMISED else 1


_HEAD: Final = ("fetches", "of URLs", "walks", *(f"{what}: {figure}" for what in ("URLs", "pages") for figure in
                ("covered", "width", "off")))  # fmt: skip


def _covered(known: KnownLinks, fetches: int, times: int) -> tuple[tuple[str, ...], int]:
    """Return the row of a number of fetches, and how often the less covered of the two sizes was covered."""
    found = [WalkArrays(known.walks(fetches, Random(seed))).estimate() for seed in range(times)]
    row = [f"{fetches:,}", f"{fetches / known.urls:.1%}", f"{fmean(one.walks for one in found):.0f}"]
    counts = []
    for truth, intervals in ((known.urls, [one.urls for one in found]), (known.pages, [one.pages for one in found])):
        counts.append(sum(one.low <= truth <= one.high for one in intervals))
        row += [str(counts[-1]), f"{_width(intervals, truth):.0%}", f"{_off(intervals, truth):+.1%}"]
    return tuple(row), min(counts)


def _width(intervals: list[Interval], truth: int) -> float:
    return fmean(one.high - one.low for one in intervals) / truth


def _off(intervals: list[Interval], truth: int) -> float:
    return fmean(one.value for one in intervals) / truth - 1


def _crawled(directory: Path, stack: ExitStack, served: SimulatedWeb, walks: int) -> Estimate:
    """Return the estimate from what the spider writes.

    Raises:
        RuntimeError: the crawl failed; the message has the end of its log.
    """
    redis = stack.enter_context(PrivateRedis())
    items = directory / "walks.jsonl"
    settings = {**SETTINGS, "BIGCRAWL_REDIS_URL": redis.url, "FEEDS": f'{{"{items}": {{"format": "jsonlines"}}}}'}
    arguments = {"walks": str(walks), "restart": str(RESTART)}
    crawl = Crawl(directory / "crawl", served.seeds, settings, arguments=arguments, spider="sample")
    stack.enter_context(crawl)
    if crawl.run(3_600):
        raise RuntimeError(f"the crawl failed:\n{crawl.log.read_text()[-2000:]}")
    with items.open(encoding="utf-8") as lines:
        return WalkArrays(read_steps(lines, str(items))).estimate()


def _told(found: Estimate) -> str:
    return f"crawled: {found.fetches:,} fetches of {found.walks:,} walks; {found.urls} URLs, {found.pages} pages"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sampling", description=__doc__)
    add = parser.add_argument
    add("--hosts", type=int, default=100, help="default 100")
    add("--pages", type=int, default=50, help="of each host; default 50")
    add("--seed", type=int, default=7, help="of the web; default 7")
    add("--times", type=int, default=100, help="seeds of the dice; default 100")
    add("--shares", type=float, nargs="+", default=[0.03, 0.05, 0.1, 0.2], help="fetches by URLs; default 0.03 to 0.2")
    add("--walks", type=int, default=250, help="of the crawl; default 250")
    add("--no-crawl", action="store_true", help="do not crawl with the spider")
    return parser


if __name__ == "__main__":
    sys.exit(main())
