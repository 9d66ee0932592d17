"""`make bench-durability`: what it costs that a page is on the medium before it counts as fetched. Options: --help.

The crawl of `make bench` with all on, in turns with BIGCRAWL_WARC_SYNC_SECONDS at 0 (a file is synced when it is full),
1 and 0.1. Redis and the state directory are on the same disk as the WARC files, so a sync waits for their writes too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.crawl import procfs
from benchmarks.crawl.figures import spread
from benchmarks.crawl.machine import describe_machine
from benchmarks.crawl.procfs import ORIGIN_CORE
from benchmarks.crawl.report import aligned, say
from benchmarks.crawl.run import Plan, run_side

if TYPE_CHECKING:
    from benchmarks.crawl.figures import Measurement

SETTING: Final = "BIGCRAWL_WARC_SYNC_SECONDS"
SIDE: Final = "bigcrawl"
SYNCS: Final = 40
PAGE_BYTES: Final = 7_000  # of 21 KB, in its file


def main() -> int:
    """Run the benchmark; 0, or 1 when a crawl has not done its work."""
    options = _parser().parse_args()
    procfs.keep_to(ORIGIN_CORE)
    directory = Path(tempfile.mkdtemp(prefix="bigcrawl-durability-", dir=options.directory))
    runs: dict[float, list[Measurement]] = {}
    try:
        machine = describe_machine()
        say(f"{machine['when']}, {machine['processor']}, {machine['cores']} cores")
        say(f"a sync of {PAGE_BYTES:,} new bytes: {1000 * sync_s(directory):.1f} ms, median")
        for number in range(1, options.rounds + 1):
            for seconds in options.sync:
                work = directory / f"{number}-{seconds}"
                run = run_side(SIDE, Plan(options.hosts, options.seconds, {SETTING: str(seconds)}), work)
                shutil.rmtree(work)
                if run.faults:
                    say(*run.faults)
                    return 1
                found = run.measurement
                runs.setdefault(seconds, []).append(found)
                marks = "".join(f"; ! {text}" for text in found.trouble)
                say(f"round {number}, {told(seconds)}: {found.pages_per_s:.0f} pages/s, {found.cpu_ms:.3f} ms{marks}")
    finally:
        shutil.rmtree(directory)
    say("", *table(runs))
    return 0


def table(runs: dict[float, list[Measurement]]) -> list[str]:
    """A line for each setting: the middle of its rounds, and their range."""
    rows = [("synced", "pages/s", "CPU a page, crawler", "with Redis", "range")]
    for seconds, found in runs.items():
        whole = [run.cpu_ms for run in found]
        rows.append(
            (
                told(seconds),
                f"{spread(found, lambda run: run.pages_per_s).median:.0f}",
                f"{spread(found, lambda run: run.crawler_ms).median:.3f} ms",
                f"{spread(found, lambda run: run.cpu_ms).median:.3f} ms",
                f"{min(whole):.3f} to {max(whole):.3f} ms",
            )
        )
    return aligned(rows)


def told(seconds: float) -> str:
    return f"every {seconds:g} s" if seconds else "when a file is full"


def sync_s(directory: Path) -> float:
    """How long the disk takes for one sync, in the middle."""
    took = []
    with (directory / "sync").open("wb", buffering=0) as file:
        for _ in range(SYNCS):
            file.write(os.urandom(PAGE_BYTES))
            began = time.perf_counter()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - began)
    (directory / "sync").unlink()
    return sorted(took)[SYNCS // 2]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.durability", description=__doc__)
    add = parser.add_argument
    add("--sync", nargs="+", type=float, default=[0.0, 1.0, 0.1], metavar="S", help="default 0 1 0.1")
    add("--rounds", type=int, default=5, help="default 5")
    add("--seconds", type=float, default=30, help="measured of each run; default 30")
    add("--hosts", type=int, default=1000, help="default 1,000")
    add("--directory", type=Path, metavar="DIR", help="on the disk that is measured; default: that of /tmp")
    return parser


if __name__ == "__main__":
    sys.exit(main())
