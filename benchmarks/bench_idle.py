"""What two idle nodes cost Redis: `python -m benchmarks.bench_idle`, two minutes.

The nodes have fetched all there is and wait for more (BIGCRAWL_CLOSE=forever). For each number of partitions it prints
the share of a core that Redis uses for both together, the commands a second, and the share that each node uses.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from benchmarks.crawl.procfs import cpu_seconds
from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of, shares
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import wait_until

PARTITIONS = (256, 2_048)
SETTLE_S, MEASURE_S = 15.0, 20.0


def main() -> None:
    """Print a line for each number of partitions."""
    with tempfile.TemporaryDirectory() as directory:
        for partitions in PARTITIONS:
            sys.stdout.write(f"{measured(Path(directory) / str(partitions), partitions)}\n")
            sys.stdout.flush()


def measured(directory: Path, partitions: int) -> str:
    """Let two nodes become idle, and watch them."""
    settings = {"BIGCRAWL_PARTITIONS": partitions, "BIGCRAWL_CLOSE": "forever", "BIGCRAWL_HOST_DELAY": 0}
    settings |= {"BIGCRAWL_PROGRESS_SECONDS": 10}  # the default; tests want a line a second
    with PrivateRedis() as server, SimulatedWeb(directory / "web", hosts=4, pages=5) as web:
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
            return f"{partitions:5} partitions: Redis {redis:.2f} % of a core, {rate:.0f} commands/s; nodes {each} %"


def commands(server: PrivateRedis) -> int:
    """Commands that Redis has run, those of scripts included."""
    return sum(int(row["calls"]) for row in server.client.info("commandstats").values())


if __name__ == "__main__":
    main()
