"""One side once: start everything, look, stop everything."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.crawl import procfs
from benchmarks.crawl.agreement import disagreements, faults, fetched
from benchmarks.crawl.figures import Look, Measurement, measured
from benchmarks.crawl.origin import SAMPLE_PAGES, Counts, Origin, on_core
from benchmarks.crawl.procfs import CRAWLER_CORE, ORIGIN_CORE
from benchmarks.crawl.profiler import PAGES_BEFORE, WARM_UP_S
from benchmarks.crawl.sides import SIDES, settings_of
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOK_S: Final = 0.25
# Slow sides spend a large part of a minute on robots.txt files, fast ones a small part. So the clock starts when
# all are there, or after this long: scrapy-redis comes to few hosts. Short runs warm up no longer than they last.
ROBOTS_S_MAX: Final = 20.0
START_S: Final = 150.0  # for the first pages to come; scrapy-redis pushes all seeds before
STOP_S: Final = 60.0  # for a clean end; stock Scrapy writes nothing, bigcrawl ends within ten seconds
OUTPUT_FILE: Final = "output.txt"
STATS_FILE: Final = "stats.json"
PROFILE_FILE: Final = "profile.json"
REPOSITORY: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Plan:
    """What all runs have in common.

    Attributes:
        seconds: between the first and the last look.
        settings: Scrapy settings that every side gets on top of its own, for trying things.
        pages_before: when the crawl has fetched so many pages, it warms up.
        python: the crawlers' interpreter.
    """

    hosts: int
    seconds: float
    settings: dict[str, Any]
    pages_before: int = PAGES_BEFORE
    python: str = sys.executable


@dataclass(frozen=True, slots=True)
class Run:
    """What one run left: the figures, the crawl's own stats, and the profile if there was to be one.

    `faults` says what makes the run no fair one, whatever it measured; `served` is all that the origin was asked for.
    """

    measurement: Measurement
    stats: dict[str, Any]
    faults: list[str]
    served: Counts
    profile: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Crawl:
    """A crawl that runs; `directory` holds its log, its output and its state."""

    name: str
    directory: Path
    process: subprocess.Popen[bytes]
    origin: Origin
    redis: PrivateRedis | None

    def check_alive(self) -> None:
        """Raise RuntimeError when the crawler has ended by itself."""
        if self.process.poll() is not None:
            said = (self.directory / OUTPUT_FILE).read_text(errors="replace").splitlines() or ["without a word"]
            raise RuntimeError(f"{self.name} ended by itself: {said[-1]}; see {self.directory}")

    def stop(self) -> dict[str, Any]:
        """End the crawl as an operator does; return its stats."""
        self.check_alive()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{self.name} did not end within {STOP_S} s: see {self.directory}") from None
        stats: dict[str, Any] = json.loads((self.directory / STATS_FILE).read_text())
        return stats


@contextmanager
def crawling(name: str, plan: Plan, directory: Path, *, profile: bool = False) -> Iterator[Crawl]:
    """Start origin, Redis and crawler, each on its core; end at the latest with the block.

    `directory` is made, and holds all that is written.
    """
    directory.mkdir(parents=True)
    with ExitStack() as stack:
        origin = stack.enter_context(Origin(directory / "origin", hosts=plan.hosts, core=ORIGIN_CORE))
        redis = stack.enter_context(PrivateRedis()) if SIDES[name].uses_redis else None
        if redis is not None:
            procfs.pin(redis.pid, ORIGIN_CORE)
        spec = directory / "spec.json"
        settings = _settings(name, plan, directory, redis.url if redis else None, profile=profile)
        told = {"spider": SIDES[name].spider, "seeds": str(origin.seeds_file), "settings": settings}
        spec.write_text(json.dumps(told, indent=1))
        said = stack.enter_context((directory / OUTPUT_FILE).open("wb"))
        command = [plan.python, "-m", "benchmarks.crawl.side_process", str(spec)]
        process = spawn(on_core(CRAWLER_CORE, *command), cwd=REPOSITORY, stdout=said, stderr=said)
        stack.callback(_end, process)
        yield Crawl(name, directory, process, origin, redis)


def run_side(name: str, plan: Plan, directory: Path, *, profile: bool = False) -> Run:
    """Crawl with one side for `plan.seconds` after its warm-up.

    Raises:
        RuntimeError: the crawler ended by itself, or never came to fetch; the message says where its log is.
    """
    with crawling(name, plan, directory, profile=profile) as crawl:
        wrong = disagreements(fetched(crawl.origin.sample()))
        measurement = _Watch(crawl).measure(plan)
        stats = crawl.stop()
        served = crawl.origin.counter.read()
        wrong += faults(name, stats, served.pages - SAMPLE_PAGES, crawl.origin.seeds)
    found = json.loads((directory / PROFILE_FILE).read_text()) if profile else None
    return Run(measurement, stats, wrong, served, found)


def _settings(name: str, plan: Plan, directory: Path, redis_url: str | None, *, profile: bool) -> dict[str, Any]:
    chosen = settings_of(name, directory, redis_url) | plan.settings
    chosen["BENCH_STATS_FILE"] = str(directory / STATS_FILE)
    chosen["BENCH_PROFILE_FILE"] = str(directory / PROFILE_FILE)
    chosen["BENCH_PROFILE_SECONDS"] = plan.seconds if profile else 0
    return chosen


class _Watch:
    """Looks at a running crawl."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl
        self._rss_bytes = 0

    def measure(self, plan: Plan) -> Measurement:
        """Wait until the crawl is warm, then measure for so long."""
        first: Look | None = None
        started = early_at_s = time.monotonic()
        for look in self._looks():
            if look.counts.pages < plan.pages_before:
                early_at_s = look.at_s
                if look.at_s > started + START_S:
                    found = f"fetched {look.counts.pages} pages in {START_S} s"
                    raise RuntimeError(f"{self._crawl.name} {found}: see {self._crawl.directory}")
            elif first is None:
                warm_s = look.at_s - early_at_s
                has_all_robots = look.counts.robots >= plan.hosts
                if warm_s >= (WARM_UP_S if has_all_robots else max(WARM_UP_S, min(ROBOTS_S_MAX, plan.seconds))):
                    first = look
            elif look.at_s >= first.at_s + plan.seconds:
                return measured(self._crawl.name, first, look, self._rss_bytes)
        raise AssertionError("unreachable")

    def _looks(self) -> Iterator[Look]:
        while True:
            time.sleep(LOOK_S)
            self._crawl.check_alive()
            self._rss_bytes = max(self._rss_bytes, procfs.rss_bytes(self._crawl.process.pid))
            yield self._look()

    def _look(self) -> Look:
        crawl = self._crawl
        return Look(
            at_s=time.monotonic(),
            counts=crawl.origin.counter.read(),
            crawler_s=procfs.cpu_seconds(crawl.process.pid),
            redis_s=procfs.cpu_seconds(crawl.redis.pid) if crawl.redis else 0.0,
            origin_s=procfs.cpu_seconds(crawl.origin.pid),
            harness_s=procfs.cpu_seconds(os.getpid()),
            crawler_core_s=procfs.core_busy_seconds(CRAWLER_CORE),
            origin_core_s=procfs.core_busy_seconds(ORIGIN_CORE),
        )


def _end(crawler: subprocess.Popen[bytes]) -> None:
    if crawler.poll() is None:
        crawler.kill()
        crawler.wait()
