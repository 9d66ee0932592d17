"""`python -m benchmarks.nodes.node REDIS_URL STATE_DIR NUMBER SETTINGS`: one node, which runs until it is killed.

The node, its loops and its Redis are real; a fetch is a wait, and a page is a list of links. NUMBER 0 offers the seeds.
At SIGUSR1 it writes a line of JSON: pages ended, URLs sent to Redis, those for partitions of other nodes, CPU seconds.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvloop

from benchmarks.frontier.ours import IN_FLIGHT, make_node
from benchmarks.nodes.replay import RecordingConnections
from benchmarks.nodes.web import Spider, resolve
from bigcrawl.clock import SystemClock
from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.redisdb import client, masters, servers
from bigcrawl.redisdb.connections import ConnectionPool
from bigcrawl.scheduler.node.loops.memory import tame_memory

if TYPE_CHECKING:
    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.held import HeldUrl

FETCH_S: Final = 0.2
REST_S: Final = 0.05  # the engine looks again, when nothing wakes it sooner


class Engine:
    """Scrapy's engine as the frontier knows it: each fetch takes 200 ms, and then its links are found.

    Attributes:
        pages: fetches that have ended.
    """

    def __init__(self, node: Node, spider: Spider, fetches: int) -> None:
        self._node = node
        self._fetches = fetches
        self._spider = spider
        self._in_flight = 0
        self._wake = asyncio.Event()
        self.pages = 0
        node.handout.wake_engine = self._wake.set

    async def run(self) -> None:
        """Fetch for ever."""
        while True:
            self._wake.clear()
            self._take()
            alarm = asyncio.get_running_loop().call_later(REST_S, self._wake.set)
            await self._wake.wait()
            alarm.cancel()

    def _take(self) -> None:
        call_later = asyncio.get_running_loop().call_later
        while self._in_flight < self._fetches:
            held = self._node.handout.buffer.pop()
            if held is None:
                self._node.pump.wake()
                return
            self._in_flight += 1
            call_later(FETCH_S, self._end, held)

    def _end(self, held: HeldUrl) -> None:
        self._in_flight -= 1
        self.pages += 1
        held.outcome = "status:200"
        self._spider.find_links(held)
        self._node.handout.fetches.end(held)
        self._wake.set()


def main() -> None:
    """Run until killed."""
    url, directory, number, settings = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(url, Path(directory), int(number), json.loads(settings)))


async def _run(url: str, directory: Path, number: int, settings: dict[str, Any]) -> None:
    tame_memory()
    own = {"BIGCRAWL_REDIS_URL": url, "BIGCRAWL_STATE_DIR": str(directory), "BIGCRAWL_NODE": f"node{number}"}
    dns = DnsCache(resolve, SystemClock())
    recording = _client(url, directory / f"record{number}")
    node = make_node(recording, dns, {**own, **settings}, lambda: not node.workload.is_crowded)
    await node.start()
    spider = Spider(node, number)
    engine = Engine(node, spider, settings.get("CONCURRENT_REQUESTS", IN_FLIGHT))
    if number == 0:
        spider.offer_seeds()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _say, engine, spider)
    _say(engine, spider)
    await engine.run()


def _client(url: str, record: Path) -> client.RedisClient:
    """A client that keeps what it sends to whichever server in the file `record`."""
    RecordingConnections.record = record.open("wb", buffering=1 << 20)
    for module in (servers, masters):
        assert vars(module)["ConnectionPool"] is ConnectionPool
        vars(module)["ConnectionPool"] = RecordingConnections
    return client.RedisClient(url)


def _say(engine: Engine, spider: Spider) -> None:
    RecordingConnections.record.flush()  # soon the node is killed
    line = {"pages": engine.pages, "sent": spider.sent, "away": spider.sent_away, "cpu_s": time.process_time()}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
