"""One crawl of the benchmark: let it run for a while and look at what the server saw."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.benchmarks.hostile.figures import figures_of
from tests.benchmarks.hostile.origin import Origin
from tests.support.crawls import Crawl
from tests.support.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from tests.benchmarks.hostile.figures import Figures
    from tests.benchmarks.hostile.web import WebPlan

_STOP_S: Final = 60.0
_BEGIN_S: Final = 120.0
_TICKS_PER_S: Final = 100

SETTINGS: Final[dict[str, Any]] = {
    "BIGCRAWL_HOST_DELAY": 1,
    "BIGCRAWL_SERVER_DELAY": 0.5,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "WARNING",
}


def crawl(
    plan: WebPlan, directory: Path, settings: dict[str, Any], times: tuple[float, float], *, bad: bool
) -> Figures:
    """Crawl the plan's web, with its bad hosts or without.

    Args:
        plan: the web.
        directory: for all that is written; made.
        settings: of Scrapy, on top of `SETTINGS`.
        times: seconds after the first page that are not counted, and seconds that are.
        bad: whether bad hosts are among the seeds.

    Raises:
        RuntimeError: the crawl ended by itself; the message says where its log is.
    """
    with no_strays_below(directory), Origin(plan, directory / "web") as origin:
        seeds = list(plan.seeds(origin.ports, with_bad=bad))
        with Crawl(directory / "crawl", seeds, {**SETTINGS, **settings}) as running:
            process = running.start()
            wait_until(lambda: origin.log.stat().st_size > 1_000, "the first pages are fetched", _BEGIN_S)
            time.sleep(times[0])
            begin_ms, cpu_s = _now_ms(), cpu_of(process.pid)
            time.sleep(times[1])
            end_ms = _now_ms()
            if process.poll() is not None:
                raise RuntimeError(f"the crawl ended by itself: see {running.log}")
            cpu_s = cpu_of(process.pid) - cpu_s
            running.terminate()
            try:
                running.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                raise RuntimeError(f"the crawl did not end within {_STOP_S:.0f} s: see {running.log}") from None
        return figures_of(origin.log, plan, begin_ms, end_ms, cpu_s)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
