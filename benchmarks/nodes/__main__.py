"""`python -m benchmarks.nodes`: what `make bench-nodes` runs. Options: --help.

A table, a row for each number of nodes: what a page costs Redis and the nodes, and how many pages one core of Redis
could serve: the median of some replays, and the least and the most. The last column is UbiCrawler's bound on
communication (section 4.1): with n equal nodes a page sends at most lambda * (n - 1) / n links to other nodes, where
lambda is the links to other sites a page.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from benchmarks.crawl import procfs
from benchmarks.crawl.report import aligned, say
from benchmarks.nodes.replay import Recorded
from benchmarks.nodes.web import LINKS_AWAY
from tests.support.redis_server import PrivateRedis

ENDED_SHARE_MIN: Final = 0.9  # what the nodes sent as they were killed is missing
CALLS: Final = ("evalsha", "evalsha_ro", "fcall")
_HEADS: Final = (
    *("nodes", "pages/s", "Redis us/page", "a core serves pages/s", "commands/page", "calls/page"),
    *("node us/page", "URLs sent/page", "to other nodes", "bound"),
)


class Look(NamedTuple):
    """Totals since the start: of Redis, and of all nodes together."""

    at_s: float
    redis_s: float
    commands: float
    calls: float
    pages: float
    sent: float
    away: float
    node_s: float

    def since(self, before: Self) -> Look:
        """What was added."""
        return Look(*(now - then for now, then in zip(self, before, strict=True)))


def main() -> None:
    """Measure, print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 3, 4, 8])
    parser.add_argument("--seconds", type=float, default=20.0, help="that are measured")
    parser.add_argument("--warm-up", type=float, default=15.0, help="seconds before that")
    parser.add_argument("--replays", type=int, default=5)
    parser.add_argument("--settings", type=json.loads, default={}, help="more settings of the nodes, as JSON")
    parser.add_argument("--commands", action="store_true", help="say which commands Redis runs for a page")
    options = parser.parse_args()
    rows = []
    for nodes in options.nodes:
        with tempfile.TemporaryDirectory() as directory:
            with PrivateRedis() as redis:
                before, after = _measured(nodes, Path(directory), redis, options)
                if options.commands:
                    say(*_commands(redis))
                ended = _ended(redis)
            recorded = Recorded.read(Path(directory).glob("record*"), before.at_s, after.at_s)
            found = after.since(before)
            rates = [found.pages / _replayed(recorded, ended) for _ in range(options.replays)]
            rows.append(_row(nodes, found, rates))
    say(*aligned([_HEADS, *rows]))


def _measured(nodes: int, directory: Path, redis: PrivateRedis, options: argparse.Namespace) -> tuple[Look, Look]:
    with ExitStack() as stack:
        processes = []
        for number in range(nodes):
            words = (redis.url, str(directory), str(number), json.dumps(options.settings))
            process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.nodes.node", *words], stdout=subprocess.PIPE, text=True
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            processes.append(process)
        for process in processes:
            _told(process)
        time.sleep(options.warm_up)
        redis.client.config_resetstat()
        before = _look(redis, processes)
        time.sleep(options.seconds)
        return before, _look(redis, processes)


def _look(redis: PrivateRedis, processes: list[subprocess.Popen[str]]) -> Look:
    stats: dict[str, Any] = redis.client.info("commandstats")
    calls = sum(row["calls"] for name, row in stats.items() if name.removeprefix("cmdstat_") in CALLS)
    commands = sum(row["calls"] for row in stats.values())
    redis_s = procfs.cpu_seconds(redis.pid)
    for process in processes:
        process.send_signal(signal.SIGUSR1)
    told = [_told(process) for process in processes]
    sums = [sum(one[name] for one in told) for name in ("pages", "sent", "away")]
    pages, sent, away = sums
    return Look(time.monotonic(), redis_s, commands, calls, pages, sent, away, sum(one["cpu_s"] for one in told))


def _told(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"a node ended with status {process.wait()}")
    told: dict[str, Any] = json.loads(line)
    return told


def _row(nodes: int, found: Look, rates: list[float]) -> tuple[str, ...]:
    pages = found.pages
    bound = LINKS_AWAY * (nodes - 1) / nodes
    return (
        str(nodes),
        f"{pages / found.at_s:,.0f}",
        f"{1e6 * found.redis_s / pages:.1f}",
        f"{statistics.median(rates):,.0f} ({min(rates):,.0f}-{max(rates):,.0f})",
        f"{found.commands / pages:.2f}",
        f"{found.calls / pages:.3f}",
        f"{1e6 * found.node_s / pages:.0f}",
        f"{found.sent / pages:.2f}",
        f"{found.away / pages:.2f}",
        f"{bound:.2f}",
    )


def _replayed(recorded: Recorded, ended: int) -> float:
    """The CPU seconds that a fresh server needs for what was recorded."""
    with PrivateRedis() as redis:
        cpu_s = recorded.replay(redis)
        share = _ended(redis) / ended
        assert share > ENDED_SHARE_MIN, f"in the replay only {share:.0%} of the URLs ended: it is not the same crawl"
        return cpu_s


def _ended(redis: PrivateRedis) -> int:
    """URLs that have ended, over all partitions."""
    found = redis.client.scan_iter("bigcrawl:*:state", count=1_000)
    return sum(int(redis.client.hget(key, "ended") or 0) for key in found)


def _commands(redis: PrivateRedis) -> list[str]:
    stats: dict[str, Any] = redis.client.info("commandstats")
    rows = sorted(stats.items(), key=lambda item: -item[1]["usec"])
    return [
        f"  {name.removeprefix('cmdstat_'):14} {row['calls']:9} calls {row['usec']:9} us" for name, row in rows[:25]
    ]


if __name__ == "__main__":
    main()
