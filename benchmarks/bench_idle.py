"""What two nodes with little to do cost: `python -m benchmarks.bench_idle`, three minutes.

They have fetched all there is and wait for more (BIGCRAWL_CLOSE=forever); or they wait for their hosts, of which one is
due four times a second; or the crawl is told to fetch four pages a second. For each it prints the share of a core that
Redis uses for both together, the commands a second, and the share that each node uses.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.crawl.procfs import cpu_seconds
from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of, shares
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTLE_S, MEASURE_S = 15.0, 20.0


class Case(NamedTuple):
    """Why two nodes have little to do."""

    why: str
    partitions: int
    hosts: int = 32
    pages: int = 100
    settings: Mapping[str, object] = MappingProxyType({})


DONE: dict[str, object] = {"BIGCRAWL_HOST_DELAY": 0}
CASES = (
    Case("all is fetched", 256, hosts=4, pages=5, settings=DONE),
    Case("all is fetched", 2_048, hosts=4, pages=5, settings=DONE),
    Case("hosts rest", 256, settings={"BIGCRAWL_HOST_DELAY": 8}),
    Case("4/s are allowed", 256, settings={"BIGCRAWL_HOST_DELAY": 0.5, "BIGCRAWL_SPEED": "4/s"}),
)


def main() -> None:
    """Print a line for each case."""
    with tempfile.TemporaryDirectory() as directory:
        for number, case in enumerate(CASES):
            sys.stdout.write(
                f"{case.why}, {case.partitions} partitions: {measured(Path(directory, str(number)), case)}\n"
            )
            sys.stdout.flush()


def measured(directory: Path, case: Case) -> str:
    """Let two nodes come to where they have little to do, and watch them."""
    partitions = case.partitions
    settings = {"BIGCRAWL_PARTITIONS": partitions, "BIGCRAWL_CLOSE": "forever", **case.settings}
    settings |= {"BIGCRAWL_PROGRESS_SECONDS": 10}  # the default; tests want a line a second
    with PrivateRedis() as server, SimulatedWeb(directory / "web", hosts=case.hosts, pages=case.pages) as web:
        told = {**settings, "BIGCRAWL_REDIS_URL": server.url}
        with Crawl(directory / "crawl", web.seeds, told) as first, second_process_of(first) as second:
            first.start()
            second.start()
            wait_until(lambda: len(web.exchanges()) > 0, "the crawl has begun", timeout_s=300)
            half = [partitions // 2] * 2
            wait_until(lambda: shares(first) == half, "each node owns half", timeout_s=300)
            time.sleep(SETTLE_S)
            assert first.process is not None
            assert second.process is not None
            pids = (server.pid, first.process.pid, second.process.pid)
            before = [cpu_seconds(pid) for pid in pids], commands(server)
            time.sleep(MEASURE_S)
            after = [cpu_seconds(pid) for pid in pids], commands(server)
            redis, *nodes = [100 * (end - begin) / MEASURE_S for begin, end in zip(before[0], after[0], strict=True)]
            rate = (after[1] - before[1]) / MEASURE_S
            each = " and ".join(f"{share:.1f}" for share in nodes)
            return f"Redis {redis:.2f} % of a core, {rate:.0f} commands/s; nodes {each} %"


def commands(server: PrivateRedis) -> int:
    """Commands that Redis has run, those of scripts included."""
    return sum(int(row["calls"]) for row in server.client.info("commandstats").values())


if __name__ == "__main__":
    main()
