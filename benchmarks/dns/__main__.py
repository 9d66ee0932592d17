"""`python -m benchmarks.dns`: what `make bench-dns` runs. Options: --help."""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections import Counter
from typing import Final, NamedTuple

from benchmarks.crawl.machine import describe_machine
from benchmarks.crawl.report import aligned, say
from bigcrawl.clock import SystemClock
from bigcrawl.config import DnsConfig
from bigcrawl.politeness.dns_cache import DnsCache, DnsError
from bigcrawl.politeness.dns_resolver import DnsResolver
from tests.support.running.processes import spawn

NAMES_A_SECOND_MIN: Final = 10_000 / 5
_HEADS: Final = ("names", "answer after", "dead", "failing", "seconds", "names/s", "CPU us/name", "found", "not-found")


class Load(NamedTuple):
    """What is resolved: `dead` and `failing` are shares of the names, `delay_ms` what an answer takes."""

    names: int
    delay_ms: int
    dead: float
    failing: float

    def hosts(self) -> list[str]:
        """The names, the kinds in turn all through."""
        kinds = [(number * 7919 % 1_000) / 1_000 for number in range(self.names)]
        return [f"h{number}.{self._kind(at)}.example" for number, at in enumerate(kinds)]

    def _kind(self, at: float) -> str:
        return "dead" if at < self.dead else "failing" if at < self.dead + self.failing else "ok"


def main() -> int:
    """Measure, print the table; 1 when the promise is not kept, with --hold."""
    parser = argparse.ArgumentParser(prog="make bench-dns", description=__doc__)
    parser.add_argument("--names", type=int, default=10_000)
    parser.add_argument("--delay-ms", type=int, default=50, help="what an answer takes")
    parser.add_argument("--hold", action="store_true", help="end with 1 when 10,000 names take more than 5 s")
    options = parser.parse_args()
    loads = [Load(options.names, options.delay_ms, 0, 0), Load(options.names, options.delay_ms, 0.3, 0.02)]
    say(f"{describe_machine()}")
    rows = [measured(load) for load in loads]
    say(*aligned([_HEADS, *(cells for _, cells in rows)]))
    return 1 if options.hold and any(rate < NAMES_A_SECOND_MIN for rate, _ in rows) else 0


def measured(load: Load) -> tuple[float, tuple[str, ...]]:
    """Names a second, and the row that tells it."""
    server = spawn([sys.executable, "-m", "benchmarks.dns.server", str(load.delay_ms)], stdout=subprocess.PIPE)
    assert server.stdout is not None
    try:
        port = int(server.stdout.readline())
        wall, cpu, ends = asyncio.run(resolve(load, port))
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()
    dead, failing = (sum(f".{kind}." in host for host in load.hosts()) for kind in ("dead", "failing"))
    assert (ends["not-found"], ends["temporary"]) == (dead, failing), ends
    told = (f"{load.names:,}", f"{load.delay_ms} ms", f"{load.dead:.0%}", f"{load.failing:.0%}", f"{wall:.2f}")
    found = (f"{load.names / wall:,.0f}", f"{1e6 * cpu / load.names:.0f}", f"{ends['found']:,}", f"{dead:,}")
    return load.names / wall, (*told, *found)


async def resolve(load: Load, port: int) -> tuple[float, float, Counter[str]]:
    """Wall and CPU seconds of resolving all names, and how they ended."""
    resolver = DnsResolver(DnsConfig(servers=(f"127.0.0.1:{port}",)))
    cache = DnsCache(resolver, SystemClock())
    ends: Counter[str] = Counter()

    async def one(host: str) -> None:
        try:
            await cache.lookup(host)
            ends["found"] += 1
        except DnsError as error:
            ends[error.reason] += 1

    hosts = load.hosts()
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(one, hosts))
    spent = time.perf_counter() - wall, time.process_time() - cpu
    await resolver.close()
    return *spent, ends


if __name__ == "__main__":
    sys.exit(main())
