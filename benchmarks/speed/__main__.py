"""`python -m benchmarks.speed`: does a crawl keep to the speed it is told, by the log of the servers?

One node, then two, are told one speed after another while they crawl a simulated web without host delay; for each ten
seconds it prints what was asked and what the servers got, robots.txt fetches among it. Options: --help.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.crawl.report import aligned, say
from bigcrawl.politeness.speed_words import parse_speed
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl_simweb.basics.exchange import ROBOTS_TARGET
from bigcrawl_simweb.serve.access_log import read_log
from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl_simweb.serve.access_log import LogLine

HEARD_S: Final = 1.0  # within which every node has heard of another speed
WINDOW_S: Final = 10
HOSTS, PAGES_PER_HOST = 100, 1_000
WITHIN: Final = 0.05
PHASES: Final = (("60/s", 1), ("120/s", 1), ("80/s", 2), ("160/s", 2), ("0/s", 2), ("1MB/s", 2))


class Phase(NamedTuple):
    """A speed that was in force from one moment to another, ms since the epoch."""

    text: str
    nodes: int
    start_ms: float
    end_ms: float


def main() -> int:
    """Run it; 0 when every phase was held within 5 %."""
    options = _parser().parse_args()
    directory = Path(tempfile.mkdtemp(prefix="bigcrawl-speed-"))
    try:
        phases = _crawl(directory, options.seconds)
        lines = list(read_log(directory / "web" / "access.log"))
    finally:
        shutil.rmtree(directory)
    rows = [[*row, ""] for phase in phases for row in windows(phase, lines)]
    held = [is_held(phase, lines) for phase in phases]
    header = ["asked", "nodes", "seconds", "fetches/s", "robots.txt/s", "MB/s", "of what was asked", ""]
    say("\n".join(aligned([header, *rows])))
    for phase, (ratio, is_within) in zip(phases, held, strict=True):
        say(f"{phase.text}, {phase.nodes} nodes: {ratio:.1%} of it{'' if is_within else ': MISSED'}")
    return 0 if all(is_within for _, is_within in held) else 1


def _crawl(directory: Path, seconds: float) -> list[Phase]:
    with ExitStack() as stack:
        web = stack.enter_context(SimulatedWeb(directory / "web", hosts=HOSTS, pages=PAGES_PER_HOST))
        redis = stack.enter_context(PrivateRedis())
        settings = {
            "BIGCRAWL_REDIS_URL": redis.url,
            "BIGCRAWL_HOST_DELAY": 0,
            "BIGCRAWL_PARTITIONS": 32,
            "BIGCRAWL_SPEED": PHASES[0][0],
            "BIGCRAWL_BUDGET_POLICY": "none",
            "TELNETCONSOLE_ENABLED": 0,
        }
        first = stack.enter_context(Crawl(directory / "crawl", web.seeds, settings, cold=True))
        second = stack.enter_context(second_process_of(first))
        first.start()
        wait_until(lambda: len(web.exchanges()) > 2 * HOSTS, "the crawl is under way", timeout_s=60)
        phases: list[Phase] = []
        for text, nodes in PHASES:
            if nodes > 1 and second.process is None:
                second.start()
                beats = CrawlKeys(first.name).beats
                wait_until(lambda: redis.client.zcard(beats) > 1, "the second node is there", timeout_s=60)  # noqa: B023
                time.sleep(5)
            redis.client.hset(CrawlKeys(first.name).control, "speed", text)
            start_ms = 1000 * time.time()
            time.sleep(HEARD_S + seconds)
            phases.append(Phase(text, nodes, start_ms + 1000 * HEARD_S, 1000 * time.time()))
        for crawl in (first, second):
            crawl.terminate()
        for crawl in (first, second):
            crawl.wait(60)
    return phases


def windows(phase: Phase, lines: Sequence[LogLine]) -> list[list[str]]:
    """A row for each ten seconds of a phase."""
    rows = []
    start_ms = phase.start_ms
    while start_ms + 1000 * WINDOW_S <= phase.end_ms:
        window = phase._replace(start_ms=start_ms, end_ms=start_ms + 1000 * WINDOW_S)
        started = _started(window, lines)
        robots = sum(line.target == ROBOTS_TARGET for line in started)
        from_s = round((start_ms - phase.start_ms) / 1000)
        rows.append(
            [
                phase.text,
                str(phase.nodes),
                f"{from_s}-{from_s + WINDOW_S}",
                f"{len(started) / WINDOW_S:.1f}",
                f"{robots / WINDOW_S:.1f}",
                f"{body_bytes(window, lines) / WINDOW_S / 1e6:.3f}",
                f"{ratio_of(window, lines):.1%}",
            ]
        )
        start_ms += 1000 * WINDOW_S
    return rows


def ratio_of(phase: Phase, lines: Sequence[LogLine]) -> float:
    """What the servers got of what was asked; fetches a second in a pause."""
    speed = parse_speed(phase.text).at(round(phase.start_ms))
    seconds = (phase.end_ms - phase.start_ms) / 1000
    if speed.is_paused:
        return len(_started(phase, lines)) / seconds
    by_pages = len(_started(phase, lines)) / seconds / speed.pages
    return max(by_pages, body_bytes(phase, lines) / seconds / speed.body_bytes)


def is_held(phase: Phase, lines: Sequence[LogLine]) -> tuple[float, bool]:
    """The ratio over the whole phase, and whether it is within 5 % of what was asked."""
    ratio = ratio_of(phase, lines)
    wanted = 0 if parse_speed(phase.text).at(round(phase.start_ms)).is_paused else 1
    return ratio, abs(ratio - wanted) <= WITHIN


def body_bytes(phase: Phase, lines: Sequence[LogLine]) -> int:
    """Bytes of answers that ended in a phase, their heads included: some 200 bytes each."""
    return sum(line.sent_bytes for line in lines if phase.start_ms <= line.end_ms < phase.end_ms)


def _started(phase: Phase, lines: Sequence[LogLine]) -> list[LogLine]:
    return [line for line in lines if phase.start_ms <= line.start_ms < phase.end_ms]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="of each speed (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
