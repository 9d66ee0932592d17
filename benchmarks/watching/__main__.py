"""`make bench-watching`: a node and a Redis with a million hosts, watched every second. Ten minutes.

The node is a real `scrapy crawl` that is paused, so that what it spends more while it is watched is for the watching:

    metrics     GET /metrics, as Prometheus does
    dashboard   GET /api/status, of the dashboard that the node serves
    status      a status by another process that keeps the crawl open, as `scrapy frontier top` does
    page        the dashboard open in Chromium, at its first screen
    all of it   the same in a window so high that each section is in view

CPU of the node, of Redis and of the asker are those of the kernel, less what node and Redis spent in the time before
and after, in which nobody watched. Commands are counted on the way to Redis. Then Chromium loads the page some times,
and says when it was painted first, and what each update took of the page's main thread. The end has the limits that are
promised for them; the exit status is 1 if one was missed.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import logging
import re
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from benchmarks.crawl.procfs import cpu_seconds
from benchmarks.watching.counting_link import CountingLink
from benchmarks.watching.fill import fill
from bigcrawl.views.opened_crawl import open_crawl
from bigcrawl.views.status import status_of
from tests.support.crawling.crawls import Crawl
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from benchmarks.watching.browser import Load
    from bigcrawl.views.opened_crawl import OpenedCrawl

LISTENS: Final = r"{}: http://127\.0\.0\.1:(\d+)/"
OWNED_S_MAX: Final = 1_800
SETTLE_S_MAX: Final = 1_800
LOADS: Final = 5
NODE_SHARE_MAX: Final = 0.01
PAINT_MS_MAX: Final = 1_500
SCREEN_MS_MAX: Final = 2_000
UPDATE_MS_MAX: Final = 30
PAGES: Final = {"page": False, "all of it": True}
"""Ways to have the dashboard open, and whether each section is in view."""

SETTLED_S: Final = 5.0
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


def compared(name: str, watched: Spent, before: Spent, after: Spent) -> tuple[str, float]:
    """Return a line about a window, less what was spent in the windows around it, and the node's share of a core."""
    rate = watched.seconds / (before.seconds + after.seconds)
    node_s = watched.node_s - (before.node_s + after.node_s) * rate
    redis_s = watched.redis_s - (before.redis_s + after.redis_s) * rate
    commands = (watched.commands - (before.commands + after.commands) * rate) / (
        len(watched.asked_s) or watched.seconds
    )
    node, redis, asker = (spent_s / watched.seconds for spent_s in (node_s, redis_s, watched.asker_s))
    line = f"{name:<10} node {node:7.2%} of a core more, Redis {redis:7.2%}; {commands:5.1f} commands "
    if not watched.asked_s:
        return f"{line}a second", node
    return f"{line}and {1000 * statistics.median(watched.asked_s):,.0f} ms each time; asker {asker:6.2%}", node


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


async def measure(
    crawl: Crawl, watched: Watched, opened_crawl: OpenedCrawl, seconds: int, url: str
) -> dict[str, float]:
    """Let each watch for a while, with a pause before and after, and print what it costs.

    `url` is that of the page, empty without a browser. Returns the share of a core that the node spends on each.
    """
    questions: dict[str, Callable[[], Awaitable[object]]] = {
        "metrics": getter(port_of(crawl, "metrics"), "/metrics"),
        "dashboard": getter(port_of(crawl, "dashboard"), "/api/status"),
        "status": lambda: status_of(opened_crawl),
    }
    before = await watched.window(seconds, None)
    say(alone(before))
    shares: dict[str, float] = {}
    for name, ask in [*questions.items(), *((page, None) for page in PAGES if url)]:
        with ExitStack() as browsers:
            if ask is None:
                from benchmarks.watching.browser import opened

                await asyncio.to_thread(browsers.enter_context, opened(url, has_all=PAGES[name]))
                await asyncio.sleep(SETTLED_S)
            found = await watched.window(seconds, ask)
        await asyncio.sleep(SETTLED_S)
        after = await watched.window(seconds, None)
        line, shares[name] = compared(name, found, before, after)
        say(line)
        before = after
    say(alone(before))
    return shares


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


def watch(hosts: int, partitions: int, seconds: int, directory: Path, *, has_browser: bool) -> bool:
    """Fill a Redis, start a node, and print what each way of watching costs. Return whether all limits were kept."""
    settings: dict[str, Any] = {
        "BIGCRAWL_CRAWL": "bench",
        "BIGCRAWL_STATE_DIR": str(directory / "state"),
        "BIGCRAWL_PARTITIONS": partitions,
        "BIGCRAWL_HOT_URLS": max(10_000, 4 * hosts),
        "BIGCRAWL_LEASE_SECONDS": 600,
    }
    logging.disable(logging.WARNING)  # a crawl that is filled in from outside seems damaged to its node
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
                url = f"http://127.0.0.1:{port_of(crawl, 'dashboard')}/" if has_browser else ""
                shares = asyncio.run(_watched(crawl, watched, asker_link.url, hosts, seconds, url))
                worst = max(shares.values(), default=0.0)
                found = (
                    [("the node, for each who watches", worst, NODE_SHARE_MAX, "{:.2%} of a core")] if shares else []
                )
                return verdicts(found + (page_loads(url) if url else []))


Measured: TypeAlias = "tuple[str, float, float, str]"
"""What it is, the worst that was measured, the limit, and how to write both."""


def page_loads(url: str) -> list[Measured]:
    """Load the page some times, and go through its sections; print each."""
    from benchmarks.watching.browser import load, section_updates

    found = []
    for number in range(LOADS):
        found.append(load(url))
        say(f"load {number + 1}   {load_text(found[-1])}")
    sections = section_updates(url)
    shown = ", ".join(f"{name} {statistics.median(spent):.1f} ({max(spent):.1f})" for name, spent in sections.items())
    say(f"sections in view, ms of the main thread an update (at most): {shown}")
    return [
        ("first paint", max(one.painted_ms for one in found), PAINT_MS_MAX, "{:,.0f} ms"),
        ("first screen with its figures", max(one.ms for one in found), SCREEN_MS_MAX, "{:,.0f} ms"),
        ("an update at the first screen", max(max(one.update_ms) for one in found), UPDATE_MS_MAX, "{:.1f} ms"),
        ("an update at any section", max(map(max, sections.values())), UPDATE_MS_MAX, "{:.1f} ms"),
    ]


def load_text(load: Load) -> str:
    long_task = f"the longest task took {load.long_task_ms:,.0f} ms" if load.long_task_ms else "no task took 50 ms"
    each, most = statistics.median(load.update_ms), max(load.update_ms)
    return (
        f"first paint after {load.painted_ms:,.0f} ms, screen after {load.ms:,.0f} ms, {load.bytes / 1e6:.2f} MB; "
        f"then {len(load.update_ms)} updates of {each:.1f} ms of the main thread, {most:.1f} at most; {long_task}"
    )


def verdicts(found: Sequence[Measured]) -> bool:
    """Print for each whether its limit was kept; return whether all were."""
    for name, worst, limit, shown in found:
        kept = "kept" if worst <= limit else "MISSED"
        say(f"{kept:<8} {name}: {shown.format(worst)} at worst; promised: {shown.format(limit)}")
    return all(worst <= limit for _, worst, limit, _ in found)


async def _watched(
    crawl: Crawl, watched: Watched, redis_url: str, hosts: int, seconds: int, url: str
) -> dict[str, float]:
    async with open_crawl(crawl.config(), redis_url) as opened_crawl:
        await settle(watched, opened_crawl, hosts)
        return await measure(crawl, watched, opened_crawl, seconds, url) if seconds else {}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=256)
    parser.add_argument(
        "--seconds", type=int, default=60, help="that each way of watching, and each pause, takes; 0: none"
    )
    parser.add_argument("--no-browser", action="store_true", help="leave out Chromium")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        is_kept = watch(chosen.hosts, chosen.partitions, chosen.seconds, place, has_browser=not chosen.no_browser)
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
