"""`python -m benchmarks.merges`. Options: --help."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.crawl import procfs
from benchmarks.crawl.origin import Origin, on_core
from benchmarks.crawl.procfs import CRAWLER_CORE, ORIGIN_CORE
from benchmarks.crawl.report import aligned, say
from benchmarks.merges.dips import Rates, curve, merges, rates
from benchmarks.merges.prefill import prefill, run_sizes
from benchmarks.merges.step_log import DURABLE, STEP, Span, read_spans
from bigcrawl.drum.record_merge import FAN_IN
from bigcrawl_simweb.serve.access_log import read_log
from tests.support.crawling.crawls import Crawl
from tests.support.redis_servers.redis_server import PrivateRedis

if TYPE_CHECKING:
    from collections.abc import Iterable

WARM_UP_S: Final = 10  # robots.txt files, and the menus that all pages link to
STOP_S: Final = 60
SEED: Final = 7
CURVE_S: Final = 5  # around the largest merge
RATIO_WANTED: Final = 0.9


class PinnedCrawl(Crawl):
    """A crawl on the crawler's core."""

    def command(self) -> list[str]:
        return [os.fspath(word) for word in on_core(CRAWLER_CORE, *super().command())]


def main() -> int:
    """Run the benchmark; 0, or 1 when the crawl failed, or no merge was seen."""
    options = _parser().parse_args()
    procfs.keep_to(ORIGIN_CORE)
    directory = Path(tempfile.mkdtemp(prefix="bigcrawl-merges-"))
    kept = options.keep
    try:
        pages_ms, spans = _crawl(options, directory)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        say(f"merges: {error}; see {directory}")
        kept = True
        return 1
    finally:
        if not kept:
            shutil.rmtree(directory)
    return 0 if _tell(options, pages_ms, spans) else 1


def _crawl(options: argparse.Namespace, directory: Path) -> tuple[list[int], list[Span]]:
    """When pages were served, ascending, and what the node did."""
    with ExitStack() as stack:
        origin = stack.enter_context(Origin(directory / "origin", hosts=options.hosts, core=ORIGIN_CORE))
        redis = stack.enter_context(PrivateRedis())
        procfs.pin(redis.pid, ORIGIN_CORE)
        settings = _settings(options, directory, redis.url)
        began_s = time.monotonic()
        for number in range(options.partitions):
            # The seeds alone fill the first batch; the second comes while the crawl warms up.
            sizes = run_sizes(options.keys // options.partitions, FAN_IN - number % 2)
            prefill(directory / "state" / Crawl.name / f"p{number:04d}", sizes, number)
        say(
            f"{options.keys:,} keys in {options.partitions} partitions, prefilled in {time.monotonic() - began_s:.0f} s"
        )
        crawl = stack.enter_context(PinnedCrawl(directory / "crawl", _lines(origin.seeds_file), settings))
        process = crawl.start()
        try:
            process.wait(options.seconds)
        except subprocess.TimeoutExpired:
            crawl.terminate()
            process.wait(STOP_S)
        else:
            raise RuntimeError(f"the crawl ended by itself with status {process.returncode}")
        lines = [line for line in read_log(directory / "origin" / "access.log") if line.status == 200]
        spans = read_spans(directory / "steps.txt")
    return sorted(line.end_ms for line in lines if line.target != "/robots.txt"), spans


def _settings(options: argparse.Namespace, directory: Path, redis_url: str) -> dict[str, Any]:
    return {
        "BIGCRAWL_STATE_DIR": directory / "state",
        "BIGCRAWL_REDIS_URL": redis_url,
        "BIGCRAWL_PARTITIONS": options.partitions,
        "BIGCRAWL_HOST_DELAY": 0 if options.full_speed else options.hosts / options.rate,
        "BIGCRAWL_PROGRESS_SECONDS": 10,
        "CONCURRENT_REQUESTS": 64,
        "TELNETCONSOLE_ENABLED": 0,
        "EXTENSIONS": json.dumps({"benchmarks.merges.step_log.StepLog": 0}),
        "BENCH_STEP_LOG": directory / "steps.txt",
        **dict(pair.split("=", 1) for pair in options.set),
    }


def _tell(options: argparse.Namespace, pages_ms: list[int], spans: list[Span]) -> bool:
    """Print all; whether there was something to measure."""
    bounds = (pages_ms[0] + 1000 * WARM_UP_S, pages_ms[-1] - 1000)
    found = [span for span in merges(spans, options.merge_min) if bounds[0] <= span.start_ms < bounds[1]]
    if not found:
        say(f"no step wrote {options.merge_min:,} keys; raise --seconds")
        return False
    say(f"{len(pages_ms):,} pages; {_sums(found)}", "")
    kinds = {
        f"steps that merged {options.merge_min:,} keys or more": found,
        "steps that wrote a run": [span for span in spans if span.keys_written],
        "all steps": [span for span in spans if span.kind == STEP],
        "durable rounds": [span for span in spans if span.kind == DURABLE],
    }
    rows: list[tuple[str, ...]] = [("while there were", "seconds", "pages/s", "otherwise", "ratio", "worst second")]
    rows += [_row(name, rates(pages_ms, _intervals(some), bounds)) for name, some in kinds.items()]
    say(*aligned(rows), "")
    largest = max(found, key=lambda span: span.end_ms - span.start_ms)
    say(*_curve(pages_ms, largest, found))
    ratio = rates(pages_ms, _intervals(found), bounds).ratio
    assert ratio is not None
    say("", f"during merges {ratio:.1%} of the rate between them; wanted: {RATIO_WANTED:.0%}")
    return True


def _sums(found: list[Span]) -> str:
    keys = sum(span.keys_written for span in found)
    seconds = sum(span.end_ms - span.start_ms for span in found) / 1000
    return (
        f"{len(found)} large merges wrote {keys:,} keys in {seconds:.1f} s, {keys / max(seconds, 1e-3) / 1e6:.1f} M/s"
    )


def _row(name: str, found: Rates) -> tuple[str, ...]:
    def told(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    seconds = f"{found.during_ms / 1000:.1f}"
    rest = (told(found.during, ".0f"), told(found.between, ".0f"), told(found.ratio, ".1%"), told(found.worst_s, "d"))
    return (name, seconds, *rest)


def _curve(pages_ms: list[int], largest: Span, found: list[Span]) -> list[str]:
    """Pages of each tenth of a second around the largest merge, ten a line; merges are marked."""
    start = largest.start_ms - 1000 * CURVE_S
    bins = curve(pages_ms, (start, largest.end_ms + 1000 * CURVE_S))
    marked = [
        f"{pages}{'*' if any(s.start_ms < start + 100 * (i + 1) and s.end_ms > start + 100 * i for s in found) else ''}"
        for i, pages in enumerate(bins)
    ]
    heads = ("s", *(f".{tenth}" for tenth in range(10)))
    rows = [heads]
    for second in range(0, len(marked), 10):
        cells = marked[second : second + 10]
        rows.append((str(second // 10 - CURVE_S), *cells, *[""] * (10 - len(cells))))
    return ["pages by tenths of a second around the largest merge (*: a large merge is under way)", *aligned(rows)]


def _intervals(spans: Iterable[Span]) -> list[tuple[int, int]]:
    return [(span.start_ms, span.end_ms) for span in spans]


def _lines(path: Path) -> list[str]:
    return path.read_text().split()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.merges", description=__doc__)
    add = parser.add_argument
    add("--keys", type=int, default=40_000_000, help="in URLSeen before the crawl; default 40,000,000")
    add("--partitions", type=int, default=8, help="each merges all it has once; default 8")
    add("--hosts", type=int, default=1_000, help="default 1,000")
    add("--rate", type=float, default=500, help="pages a second that the host delay allows; default 500")
    add("--full-speed", action="store_true", help="no host delay: the crawler's core is full")
    add("--seconds", type=float, default=90, help="from the start of the crawl to its end; default 90")
    add("--merge-min", type=int, default=1_000_000, help="keys a merge writes to be a large one; default 10^6")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a Scrapy setting")
    add("--keep", action="store_true", help="keep logs and state, and say where they are")
    return parser


if __name__ == "__main__":
    sys.exit(main())
