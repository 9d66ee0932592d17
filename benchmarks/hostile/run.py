"""One crawl of the benchmark: let it run for a while and look at what the server saw meanwhile."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.hostile.figures import figures_of
from benchmarks.hostile.origin import Origin
from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.hostile.figures import Figures
    from benchmarks.hostile.web import WebPlan

_STOP_S: Final = 60.0
_BEGIN_S: Final = 120.0
_TICKS_PER_S: Final = 100

SETTINGS: Final[dict[str, Any]] = {
    "BIGCRAWL_HOST_DELAY": 1,
    "BIGCRAWL_SERVER_DELAY": 0.5,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "WARNING",
}


class Window(NamedTuple):
    """A part of a crawl; seconds after its first page."""

    begin_s: float
    end_s: float


def crawl(
    plan: WebPlan, directory: Path, settings: dict[str, Any], windows: Sequence[Window], *, bad: bool
) -> list[Figures]:
    """Crawl the plan's web, with its bad hosts or without.

    Args:
        plan: the web.
        directory: for all that is written; made.
        settings: of Scrapy, on top of `SETTINGS`.
        windows: what is counted, in order, one after the other.
        bad: whether bad hosts are among the seeds.

    Returns:
        The figures of each window.

    Raises:
        RuntimeError: the crawl ended by itself; the message says where its log is.
    """
    with no_strays_below(directory), Origin(plan, directory / "web") as origin:
        seeds = list(plan.seeds(origin.ports, with_bad=bad))
        with Crawl(directory / "crawl", seeds, {**SETTINGS, **settings}, cold=True) as running:
            process = running.start()
            wait_until(lambda: origin.log.stat().st_size > 1_000, "the first pages are fetched", _BEGIN_S)
            first_s = time.monotonic()
            seen = []
            for window in windows:
                time.sleep(max(0.0, first_s + window.begin_s - time.monotonic()))
                begin_ms, cpu_s = _now_ms(), cpu_of(process.pid)
                time.sleep(max(0.0, first_s + window.end_s - time.monotonic()))
                seen.append((begin_ms, _now_ms(), cpu_of(process.pid) - cpu_s))
            if process.poll() is not None:
                raise RuntimeError(f"the crawl ended by itself: see {running.log}")
            running.terminate()
            try:
                running.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                raise RuntimeError(f"the crawl did not end within {_STOP_S:.0f} s: see {running.log}") from None
        return [figures_of(origin.log, plan, *each) for each in seen]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
