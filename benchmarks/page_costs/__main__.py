"""`make bench-page_costs`: CPU a page by its size, links, scheme, and pages a connection, of bigcrawl and of Scrapy.

Both crawl the same pages in turns, everything on as in `make bench`: the crawler has core 0, origin and Redis core 1.
A tenth of the links is new. Eleven cases of half a minute a round; `--svg FILE` draws the sizes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.crawl import procfs
from benchmarks.crawl.origin import on_core
from benchmarks.crawl.procfs import CRAWLER_CORE, ORIGIN_CORE
from benchmarks.crawl.report import aligned, say
from benchmarks.crawl.sides import SIDES, settings_of
from benchmarks.page_costs.origin import Shape, seeds
from benchmarks.svg_plot import Axis, Line, svg_of
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PLAIN: Final = Shape(21_000, 60)
CASES: Final = (
    Shape(1_000, 0),
    Shape(21_000, 0),
    Shape(100_000, 0),
    Shape(500_000, 0),
    Shape(5_000, 60),
    PLAIN,
    Shape(100_000, 60),
    Shape(500_000, 60),
    Shape(100_000, 600),
    PLAIN._replace(is_kept=False),
    PLAIN._replace(is_secure=True),
    PLAIN._replace(is_secure=True, is_kept=False),
)
COMPARED: Final = ("bigcrawl", "stock")
PAGES_BEFORE: Final = 300
START_S_MAX: Final = 120.0
STOP_S_MAX: Final = 120.0
_HEADS: Final = (
    "page KB",
    "links",
    "scheme",
    "connection",
    "pages/s",
    "ms a page",
    "Scrapy pages/s",
    "ms a page",
    "times",
)


class Cost(NamedTuple):
    """Pages a second, and CPU of crawler and Redis a page."""

    rate: float
    cpu_ms: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-page_costs", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=8, help="measured of each run; default 8")
    parser.add_argument("--cases", type=int, nargs="+", default=range(len(CASES)), help="by number, from 0")
    parser.add_argument("--svg", type=Path, help="file for the plot")
    options = parser.parse_args()
    procfs.keep_to(ORIGIN_CORE)
    costs = {}
    for shape in (CASES[number] for number in options.cases):
        rounds = [[measured(name, shape, options.seconds) for name in COMPARED] for _ in range(options.rounds)]
        costs[shape] = [
            Cost(median(each.rate for each in side), median(each.cpu_ms for each in side))
            for side in zip(*rounds, strict=True)
        ]
        say(" ".join(row(shape, costs[shape])))
    say("", *aligned([_HEADS, *(row(shape, found) for shape, found in costs.items())]))
    if options.svg:
        options.svg.write_text(plot(costs), "utf-8")


def measured(name: str, shape: Shape, seconds: float) -> Cost:
    with tempfile.TemporaryDirectory(prefix="bigcrawl-page_costs-") as made, ExitStack() as stack:
        directory = Path(made)
        told = [sys.executable, "-m", "benchmarks.page_costs.origin", json.dumps(shape._asdict())]
        pipe = subprocess.PIPE
        origin = stack.enter_context(spawn(on_core(ORIGIN_CORE, *told), stdin=pipe, stdout=pipe))
        stack.callback(origin.terminate)
        assert origin.stdin is not None
        assert origin.stdout is not None
        port = int(origin.stdout.readline())

        def served() -> int:
            assert origin.stdin is not None
            assert origin.stdout is not None
            origin.stdin.write(b"\n")
            origin.stdin.flush()
            return int(origin.stdout.readline())

        redis = stack.enter_context(PrivateRedis()) if SIDES[name].uses_redis else None
        if redis is not None:
            procfs.pin(redis.pid, ORIGIN_CORE)
        (directory / "seeds.txt").write_text("\n".join(seeds(shape, port)))
        settings = settings_of(name, directory, redis.url if redis else None)
        settings["BENCH_STATS_FILE"] = str(directory / "stats.json")
        spec = {"spider": SIDES[name].spider, "seeds": str(directory / "seeds.txt"), "settings": settings}
        (directory / "spec.json").write_text(json.dumps(spec))
        side = [sys.executable, "-m", "benchmarks.crawl.side_process", str(directory / "spec.json")]
        said = stack.enter_context((directory / "said.txt").open("wb"))
        crawler = stack.enter_context(spawn(on_core(CRAWLER_CORE, *side), stdout=said, stderr=said))
        stack.callback(crawler.kill)

        def spent() -> float:
            return procfs.cpu_seconds(crawler.pid) + (procfs.cpu_seconds(redis.pid) if redis else 0)

        begun = time.monotonic()
        while served() < PAGES_BEFORE:
            if crawler.poll() is not None or time.monotonic() > begun + START_S_MAX:
                raise SystemExit(f"{name} fetches nothing: {(directory / 'said.txt').read_text()[-1_000:]}")
            time.sleep(0.1)
        time.sleep(seconds / 2)
        pages, cpu_s, at_s = served(), spent(), time.monotonic()
        time.sleep(seconds)
        pages, cpu_s, passed_s = served() - pages, spent() - cpu_s, time.monotonic() - at_s
        if not pages:
            raise SystemExit(f"{name} fetched no page of {shape}: {(directory / 'said.txt').read_text()[-1_000:]}")
        return Cost(pages / passed_s, 1000 * cpu_s / pages)


def row(shape: Shape, found: Sequence[Cost]) -> tuple[str, ...]:
    ours, theirs = found
    return (
        f"{shape.page_bytes / 1000:.0f}",
        str(shape.links),
        "https" if shape.is_secure else "http",
        "several pages" if shape.is_kept else "one page",
        f"{ours.rate:.0f}",
        f"{ours.cpu_ms:.2f}",
        f"{theirs.rate:.0f}",
        f"{theirs.cpu_ms:.2f}",
        f"{ours.rate / theirs.rate:.1f}",
    )


def plot(costs: Mapping[Shape, Sequence[Cost]]) -> str:
    plain = {shape: found for shape, found in costs.items() if shape.is_kept and not shape.is_secure}
    links = sorted({shape.links for shape in plain})
    lines = [
        Line(
            f"{side}, {many} links",
            [(s.page_bytes / 1000, found[n].cpu_ms) for s, found in plain.items() if s.links == many],
        )
        for n, side in enumerate(("bigcrawl", "Scrapy"))
        for many in links
    ]
    top = max(cost.cpu_ms for found in plain.values() for cost in found)
    x = Axis("KB a page", 1, 500, (1, 5, 21, 100, 500), is_log=True)
    y = Axis("ms of CPU a page", 0.5, max(32.0, top), (0.5, 1, 2, 4, 8, 16, 32), is_log=True)
    return svg_of("CPU a page by its size", x, y, lines)


if __name__ == "__main__":
    main()
