"""One crawl of the benchmark: through a link whose speed changes while it runs."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.crowd.link import shape
from benchmarks.crowd.spy import SETTING, Line, lines_of
from benchmarks.hostile.origin import Origin
from benchmarks.hostile.run import cpu_of
from benchmarks.hostile.web import WebPlan
from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

WINDOW_S: Final = 5
_BEGIN_S: Final = 60
_STOP_S: Final = 60
_WARM_S: Final = 4  # the limit counts up meanwhile
_SEED, _HOSTS = 7, 300
_SPY_LOG: Final = "spy.log"

SETTINGS: Final[dict[str, Any]] = {
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_BACKOFF": 0,
    "BIGCRAWL_BUDGET_POLICY": "none",
    "BIGCRAWL_PARTITIONS": 32,
    "BIGCRAWL_TRUNCATE": False,
    "BIGCRAWL_WARC_DIR": "",
    "EXTENSIONS": json.dumps({"benchmarks.crowd.spy.Spy": 0}),
    "LOG_LEVEL": "WARNING",
    "TELNETCONSOLE_ENABLED": False,
}


class Window(NamedTuple):
    """Some seconds of a crawl."""

    from_s: int
    mbit_per_s: float
    limit: float
    pages_per_s: float
    took_ms: float
    lost: int


class Rate(NamedTuple):
    """How fast a crawl was, by the clock and by what it had of the CPU."""

    pages_per_s: float
    pages_per_cpu_s: float


def crawl(
    directory: Path,
    phases: Sequence[tuple[float, float]],
    latency_ms: int,
    settings: dict[str, Any],
    hosts: int = _HOSTS,
) -> list[Window]:
    """Crawl through phases of (Mbit/s, seconds), 0 for all that goes, and tell how it went."""
    shape(phases[0][0])
    windows = []
    with _running(directory, latency_ms, settings, hosts):
        for mbit_per_s, seconds in phases:
            shape(mbit_per_s)
            start_ms = time.time_ns() // 1_000_000
            time.sleep(seconds)
            windows += [(mbit_per_s, start_ms + 1000 * at) for at in range(0, round(seconds), WINDOW_S)]
        shape(0)
    lines = list(lines_of(directory / _SPY_LOG))
    first_ms = windows[0][1]
    return [window_of(lines, start_ms, first_ms, mbit_per_s) for mbit_per_s, start_ms in windows]


def crawl_freely(directory: Path, seconds: float, settings: dict[str, Any]) -> Rate:
    """Crawl as fast as the CPU can: the link takes everything, and hosts answer at once."""
    shape(0)
    with _running(directory, 0, settings) as pid:
        time.sleep(_WARM_S)
        begin_s, begin_cpu_s = time.time(), cpu_of(pid)
        time.sleep(seconds)
        end_s, end_cpu_s = time.time(), cpu_of(pid)
    pages = sum(begin_s <= line.end_ms / 1000 < end_s for line in lines_of(directory / _SPY_LOG))
    return Rate(pages / (end_s - begin_s), pages / (end_cpu_s - begin_cpu_s))


@contextmanager
def _running(directory: Path, latency_ms: int, settings: dict[str, Any], hosts: int = _HOSTS) -> Iterator[int]:
    """A crawl that has begun, by its process id; its log is whole when it is over."""
    plan = WebPlan(_SEED, hosts, bad_percent=0, bad_urls=0, latency_ms=latency_ms)
    with no_strays_below(directory), Origin(plan, directory / "web") as origin:
        seeds = list(plan.seeds(origin.ports, with_bad=False))
        with Crawl(
            directory / "crawl", seeds, {**SETTINGS, SETTING: directory / _SPY_LOG, **settings}, cold=True
        ) as crawling:
            process = crawling.start()
            wait_until(lambda: origin.log.stat().st_size > 1_000, "the first pages are fetched", _BEGIN_S)
            yield process.pid
            crawling.terminate()
            crawling.wait(_STOP_S)


def window_of(lines: Sequence[Line], start_ms: int, first_ms: int, mbit_per_s: float) -> Window:
    """What ended in the window that begins then."""
    here = [line for line in lines if start_ms <= line.end_ms < start_ms + 1000 * WINDOW_S]
    took_ms = [line.took_ms for line in here if line.is_answered]
    return Window(
        (start_ms - first_ms) // 1000,
        mbit_per_s,
        median(line.limit for line in here) if here else 0,
        len(took_ms) / WINDOW_S,
        median(took_ms) if took_ms else 0,
        len(here) - len(took_ms),
    )
