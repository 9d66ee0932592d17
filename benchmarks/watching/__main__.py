"""`make bench-watching`: a node and a Redis with a million hosts, watched every second. Ten minutes.

The node is a real `scrapy crawl` that is paused, so that what it spends more while it is watched is for the watching:

    metrics     GET /metrics, as Prometheus does
    dashboard   GET /api/status, of the dashboard that the node serves
    status      a status by another process that keeps the crawl open, as `scrapy frontier top` does

CPU of the node, of Redis and of the asker are those of the kernel, less what node and Redis spent in the time before
and after, in which nobody watched. Commands are counted on the way to Redis. At the end Chromium loads the dashboard.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.crawl.procfs import cpu_seconds
from benchmarks.watching.counting_link import CountingLink
from benchmarks.watching.fill import fill
from bigcrawl.views.opened_crawl import open_crawl
from bigcrawl.views.status import status_of
from tests.support.crawling.crawls import Crawl
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bigcrawl.views.opened_crawl import OpenedCrawl

LISTENS: Final = r"{}: http://127\.0\.0\.1:(\d+)/"
OWNED_S_MAX: Final = 1_800
SETTLE_S_MAX: Final = 1_800
LOADS: Final = 5
SEED: Final = "http://www.example0.com/"
SERVING: Final = {
    "BIGCRAWL_METRICS": 1,
    "BIGCRAWL_METRICS_PORT": 0,
    "BIGCRAWL_DASHBOARD": 1,
    "BIGCRAWL_DASHBOARD_PORT": 0,
    "BIGCRAWL_PROGRESS_SECONDS": 60,
}


class Spent(NamedTuple):
    """In so many seconds: CPU of node, Redis and this thread, commands, and the time that each question took."""

    seconds: float
    node_s: float
    redis_s: float
    asker_s: float
    commands: int
    asked_s: list[float]


class Watched:
    """A running node, its Redis, and what both have spent."""

    def __init__(self, crawl: Crawl, redis: PrivateRedis, *links: CountingLink) -> None:
        assert crawl.process is not None
        self._pid, self._redis, self._links = crawl.process.pid, redis, links

    def _commands(self) -> int:
        return sum(link.commands for link in self._links)

    async def window(self, seconds: int, ask: Callable[[], Awaitable[object]] | None) -> Spent:
        """Ask once a second for so long, or let time pass."""
        pid, redis_pid = self._pid, self._redis.pid
        node_s, redis_s, commands = cpu_seconds(pid), cpu_seconds(redis_pid), self._commands()
        asker_s, begun, asked = time.thread_time(), time.monotonic(), list[float]()
        for number in range(seconds):
            if ask is not None:
                since = time.monotonic()
                await ask()
                asked.append(time.monotonic() - since)
            await asyncio.sleep(max(0.0, begun + number + 1 - time.monotonic()))
        return Spent(
            time.monotonic() - begun,
            cpu_seconds(pid) - node_s,
            cpu_seconds(redis_pid) - redis_s,
            time.thread_time() - asker_s,
            self._commands() - commands,
            asked,
        )


def compared(name: str, watched: Spent, before: Spent, after: Spent) -> str:
    """Return a line about a window, less what was spent in the windows around it."""
    rate = watched.seconds / (before.seconds + after.seconds)
    node_s = watched.node_s - (before.node_s + after.node_s) * rate
    redis_s = watched.redis_s - (before.redis_s + after.redis_s) * rate
    commands = (watched.commands - (before.commands + after.commands) * rate) / len(watched.asked_s)
    node, redis, asker = (spent_s / watched.seconds for spent_s in (node_s, redis_s, watched.asker_s))
    return (
        f"{name:<10} node {node:7.2%} of a core more, Redis {redis:7.2%}, asker {asker:6.2%}; {commands:5.1f} commands "
        f"and {1000 * statistics.median(watched.asked_s):,.0f} ms each time"
    )


def alone(spent: Spent) -> str:
    """Return a line about a window in which nobody watched."""
    node, redis, commands = (each / spent.seconds for each in (spent.node_s, spent.redis_s, spent.commands))
    return f"{'unwatched':<10} node {node:7.2%} of a core, Redis {redis:7.2%}, {commands:,.0f} commands a second"


def getter(port: int, path: str) -> Callable[[], Awaitable[object]]:
    """Return a question by HTTP, on a connection of its own, as scrapers and `curl` ask."""

    def get() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200, body[:500]
        finally:
            connection.close()

    return lambda: asyncio.to_thread(get)


async def measure(crawl: Crawl, watched: Watched, opened_crawl: OpenedCrawl, seconds: int) -> None:
    """Let each watch for a while, with a pause before and after, and print what it costs."""
    questions: dict[str, Callable[[], Awaitable[object]]] = {
        "metrics": getter(port_of(crawl, "metrics"), "/metrics"),
        "dashboard": getter(port_of(crawl, "dashboard"), "/api/status"),
        "status": lambda: status_of(opened_crawl),
    }
    before = await watched.window(seconds, None)
    say(alone(before))
    for name, ask in questions.items():
        found = await watched.window(seconds, ask)
        after = await watched.window(seconds, None)
        say(compared(name, found, before, after))
        before = after
    say(alone(before))


def port_of(crawl: Crawl, what: str) -> int:
    """Where the node serves metrics or dashboard, by its log."""
    pattern = re.compile(LISTENS.format(what))
    wait_until(lambda: pattern.search(crawl.log.read_text()) is not None, f"{what} is served", OWNED_S_MAX)
    found = pattern.search(crawl.log.read_text())
    assert found is not None
    return int(found[1])


async def settle(watched: Watched, opened_crawl: OpenedCrawl, hosts: int) -> None:
    """Wait until the node owns everything, and spends as much in ten seconds as in the ten before."""
    deadline = time.monotonic() + SETTLE_S_MAX
    while True:
        found = await status_of(opened_crawl)
        partitions, known = found["partitions"], sum(found["hosts"][state] for state in ("ready", "waiting", "busy"))
        if partitions["owned"] == partitions["all"] and known >= hosts:
            break
        if time.monotonic() > deadline:
            raise RuntimeError(f"the node does not own a crawl of {hosts} hosts: {found}")
        await asyncio.sleep(1)
    last = await watched.window(10, None)
    while time.monotonic() < deadline:
        now = await watched.window(10, None)
        pairs = ((now.node_s, last.node_s), (now.redis_s, last.redis_s), (now.commands / 200, last.commands / 200))
        if all(0.9 * before - 0.05 <= after <= 1.1 * before + 0.05 for after, before in pairs):
            return
        last = now


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def watch(hosts: int, partitions: int, seconds: int, directory: Path, *, has_browser: bool) -> None:
    """Fill a Redis, start a node, and print what each way of watching costs."""
    settings: dict[str, Any] = {
        "BIGCRAWL_CRAWL": "bench",
        "BIGCRAWL_STATE_DIR": str(directory / "state"),
        "BIGCRAWL_PARTITIONS": partitions,
        "BIGCRAWL_HOT_URLS": max(10_000, 4 * hosts),
        "BIGCRAWL_LEASE_SECONDS": 600,
    }
    with PrivateRedis(aof=False) as redis:
        begun = time.monotonic()
        asyncio.run(fill({**settings, "BIGCRAWL_REDIS_URL": redis.url}, redis.url, hosts))
        memory = redis.client.info("memory")["used_memory"]
        say(f"{hosts:,} hosts in {time.monotonic() - begun:,.0f} s; Redis has {memory / 1e6:,.0f} MB")
        with CountingLink(redis.socket_path) as link, CountingLink(redis.socket_path) as asker_link:
            settings["BIGCRAWL_REDIS_URL"] = link.url
            with Crawl(directory / "crawl", [SEED], {**settings, **SERVING}, name="bench", cold=True) as crawl:
                crawl.frontier("pause")
                crawl.start()
                watched = Watched(crawl, redis, link, asker_link)
                asyncio.run(_watched(crawl, watched, asker_link.url, hosts, seconds))
                if has_browser:
                    from benchmarks.watching.browser import loads

                    found = loads(f"http://127.0.0.1:{port_of(crawl, 'dashboard')}/", LOADS)
                    times = ", ".join(f"{load.ms:,.0f} (CPU {load.cpu_ms:,.0f})" for load in found)
                    say(f"dashboard in Chromium: {times} ms; {max(load.bytes for load in found) / 1e6:.2f} MB")


async def _watched(crawl: Crawl, watched: Watched, redis_url: str, hosts: int, seconds: int) -> None:
    async with open_crawl(crawl.config(), redis_url) as opened_crawl:
        await settle(watched, opened_crawl, hosts)
        await measure(crawl, watched, opened_crawl, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=256)
    parser.add_argument("--seconds", type=int, default=60, help="that each way of watching, and each pause, takes")
    parser.add_argument("--no-browser", action="store_true", help="leave out Chromium")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        watch(chosen.hosts, chosen.partitions, chosen.seconds, place, has_browser=not chosen.no_browser)


if __name__ == "__main__":
    main()
