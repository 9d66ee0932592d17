"""What nodes with little to do cost: `make bench-idle`, 25 minutes; status 1 if any costs more than it may.

They have fetched all there is and wait for more (BIGCRAWL_CLOSE=forever); or all their hosts rest; or the crawl is told
a speed at which a page is fetched every twenty seconds. One node and two, at 256 and 1,024 partitions. CPU is in shares
of one core, by the kernel's count of nanoseconds. Of Redis it is what the crawl adds to a second server, which has
neither clients nor data, in the same seconds and on the same core: what else the machine does then slows both. The
error is that of the mean of six parts of ten seconds.

    make bench-idle ARGS="--partitions 256 --nodes 1 --why rest"
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import mean, stdev
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.crawl.procfs import run_ns
from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of, shares
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SETTLE_S, PART_S, PARTS = 30.0, 10.0, 6
NODE_MAX, REDIS_MAX = 0.5, 0.1  # percent of a core
SERVERS_CORE = 0


class Case(NamedTuple):
    """Why nodes have little to do."""

    why: str
    hosts: int
    pages: int
    settings: Mapping[str, object]
    has_end: bool = False


CASES = (
    Case("all is fetched", 4, 5, MappingProxyType({"BIGCRAWL_HOST_DELAY": 0}), has_end=True),
    Case("hosts rest", 32, 100, MappingProxyType({"BIGCRAWL_HOST_DELAY": 120})),
    Case("0.05/s are allowed", 32, 100, MappingProxyType({"BIGCRAWL_HOST_DELAY": 0.5, "BIGCRAWL_SPEED": "0.05/s"})),
)


class Cost(NamedTuple):
    """Percent of a core: of Redis without clients, of Redis more than that, of each node; and commands a second."""

    alone: float
    redis: float
    error: float
    nodes: list[float]
    commands: float

    @property
    def is_low(self) -> bool:
        """Whether nobody costs more than allowed."""
        return self.redis <= REDIS_MAX and max(self.nodes) <= NODE_MAX

    def __str__(self) -> str:
        each = " and ".join(f"{share:.2f}" for share in self.nodes)
        redis = f"Redis {self.redis:.3f} ± {self.error:.3f} % (alone {self.alone:.3f}), {self.commands:.0f} commands/s"
        return f"{redis}; each node {each} %{'' if self.is_low else '   TOO MUCH'}"


def main(words: Sequence[str] | None = None) -> int:
    """Print a line for each case. Return 1 if one costs too much."""
    parser = argparse.ArgumentParser(prog="make bench-idle", description=__doc__)
    parser.add_argument("--partitions", type=int, nargs="+", default=[256, 1_024])
    parser.add_argument("--nodes", type=int, nargs="+", choices=(1, 2), default=[1, 2])
    parser.add_argument("--why", default="", help="only cases with this in their names")
    asked = parser.parse_args(words)
    are_low = True
    for case in (case for case in CASES if asked.why in case.why):
        for partitions in asked.partitions:
            for nodes in asked.nodes:
                with tempfile.TemporaryDirectory() as directory:
                    cost = measured(Path(directory), case, partitions, nodes)
                are_low &= cost.is_low
                sys.stdout.write(f"{case.why}, {partitions:,} partitions, {nodes} node{'s' * (nodes > 1)}: {cost}\n")
                sys.stdout.flush()
    return 0 if are_low else 1


def measured(directory: Path, case: Case, partitions: int, nodes: int) -> Cost:
    """Let nodes come to where they have little to do, and watch them."""
    settings = {"BIGCRAWL_PARTITIONS": partitions, "BIGCRAWL_CLOSE": "forever", **case.settings}
    settings |= {"BIGCRAWL_PROGRESS_SECONDS": 10}  # the default; tests want a line a second
    with ExitStack() as stack:
        server, unused = stack.enter_context(PrivateRedis()), stack.enter_context(PrivateRedis())
        for redis in (server, unused):
            os.sched_setaffinity(redis.pid, {SERVERS_CORE})  # another core may be slower, and a change of cores costs
        web = stack.enter_context(SimulatedWeb(directory / "web", hosts=case.hosts, pages=case.pages))
        told = {**settings, "BIGCRAWL_REDIS_URL": server.url}
        first = stack.enter_context(Crawl(directory / "crawl", web.seeds, told))
        crawls = [first, *[stack.enter_context(second_process_of(first)) for _ in range(nodes - 1)]]
        processes = [crawl.start() for crawl in crawls]
        wait_until(lambda: len(web.exchanges()) > 0, "the crawl has begun", timeout_s=300)
        each = [partitions // nodes] * nodes
        wait_until(lambda: shares(first) == each, "each node owns its share", timeout_s=300)
        if case.has_end:
            wait_until(lambda: not waiting(first), "all is fetched", timeout_s=300)
        time.sleep(SETTLE_S)
        before = commands(server)
        pids = [server.pid, unused.pid, *[process.pid for process in processes]]
        parts = [shares_of(pids) for _ in range(PARTS)]
        commands_s = (commands(server) - before) / (PARTS * PART_S)
        more = [used - alone for used, alone, *_ in parts]
        _, alone, *nodes_each = map(mean, zip(*parts, strict=True))
        return Cost(alone, mean(more), stdev(more) / PARTS**0.5, nodes_each, commands_s)


def waiting(crawl: Crawl) -> int:
    """URLs that wait or are fetched."""
    urls = crawl.status()["urls"]
    return sum(urls[place] for place in ("inbox", "disk", "queued", "taken"))


def shares_of(pids: Sequence[int]) -> list[float]:
    """Percent of a core that each process uses in a part of the measurement."""
    since_ns, before = time.monotonic_ns(), [run_ns(pid) for pid in pids]
    time.sleep(PART_S)
    after, passed_ns = [run_ns(pid) for pid in pids], time.monotonic_ns() - since_ns
    return [100 * (end - begin) / passed_ns for begin, end in zip(before, after, strict=True)]


def commands(server: PrivateRedis) -> int:
    """Commands that Redis has run, those of scripts included."""
    return sum(int(row["calls"]) for row in server.client.info("commandstats").values())


if __name__ == "__main__":
    sys.exit(main())
