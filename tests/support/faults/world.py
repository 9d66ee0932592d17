"""What faults happen to: a crawl of three nodes, the network between each and Redis, their disks, and Redis.

Nodes share a disk, or each has its own and they share a store (`own_disks`).
"""

from __future__ import annotations

import heapq
import itertools
import json
import shutil
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.warc.recovery import recover_directory
from tests.support.crawling.crawls import Crawl
from tests.support.crawling.verdicts import pause
from tests.support.faults import disk
from tests.support.faults.link import FaultyLink
from tests.support.faults.machine import STATE
from tests.support.faults.repeats import Repeats
from tests.support.faults.replica import Replica, Replicated
from tests.support.hostile.shifted_clock import ShiftedClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tests.support.crawling.crawls import SimulatedWeb
    from tests.support.faults.machine import Machine, Network
    from tests.support.servers.s3_server import FaultyS3

T = TypeVar("T")

NODES, NODES_MAX, PARTITIONS = 3, 5, 24
LEASE_S = 10
# The web's slowest answer takes less; hosts of a node that is stopped for longer than its lease wait for it.
DEADLINE_S = 6
DELAY_MS = 150
POLL_S = 0.05
REST_S = 1.0  # before the same node, or Redis, meets its next fault
STOP_S = 30  # SIGTERM: a node that has the machine for itself takes ten

NAME = "faults"
_CRAWL = CrawlKeys(NAME).crawl

SETTINGS: dict[str, Any] = {
    "BIGCRAWL_PARTITIONS": PARTITIONS,
    "BIGCRAWL_HOST_DELAY": DELAY_MS / 1000,
    "BIGCRAWL_IN_PROCESS_MAX": 4 * 40,  # a node's hosts are few then, and have lanes
    "BIGCRAWL_STEP_SECONDS": 0.5,
    "BIGCRAWL_DURABLE_SECONDS": 1,
    "BIGCRAWL_LEASE_SECONDS": LEASE_S,
    "BIGCRAWL_FETCH_DEADLINE": DEADLINE_S,
    "DOWNLOAD_TIMEOUT": DEADLINE_S,
    "EXTENSIONS": json.dumps({"tests.support.faults.disk.FaultyDisk": 0}),
}


# In a store a node's durable points are the only ones that others can go on from.
STORE_SETTINGS: dict[str, Any] = {"BIGCRAWL_STORE_SECONDS": 2}
CLOCK_WRONG_S = 30.0


class Node:
    """One of the nodes: its process, started again whenever it has died, its link to Redis, and its machine, if any."""

    def __init__(self, name: str, link: FaultyLink, crawl: Crawl, machine: Machine | None = None) -> None:
        self.name = name
        self.link = link
        self.crawl = crawl
        self.machine = machine
        self.word = Path(str(crawl.settings["FAULTY_DISK"]))

    def __repr__(self) -> str:
        return f"<Node {self.name} starts={self.crawl.starts} status={self.status}>"

    @property
    def status(self) -> int | None:
        """Its exit status; None while it runs."""
        assert self.crawl.process is not None
        return self.crawl.process.poll()

    def signal(self, number: signal.Signals) -> None:
        assert self.crawl.process is not None
        self.crawl.process.send_signal(number)

    def set_clock_wrong(self, clock: ShiftedClock) -> None:
        """From its next start on its wall clock is wrong."""
        clock.set(CLOCK_WRONG_S)
        self.crawl.environment.update(clock.environment)
        self.crawl.cold = True

    def lose_disk(self) -> None:
        """Its state is gone; pages in WARC files lie elsewhere."""
        state = self.machine.disk(STATE) if self.machine else Path(self.crawl.settings["BIGCRAWL_STATE_DIR"])
        shutil.rmtree(state / NAME, ignore_errors=True)

    def last_words(self) -> str:
        return self.crawl.log.read_text(errors="replace")[-3_000:]


class World:
    """The crawl, and the moments at which what was broken is mended. One thread does everything.

    Attributes:
        visits: how often each page is visited.
        is_indexed: whether each WARC file has its indexes in the end.
        s3: the store, if it is a server.
        network: where machines share the mount of a store, if nodes have machines.
    """

    visits = 1
    is_indexed = False
    s3: FaultyS3 | None = None
    network: Network | None = None

    def __init__(
        self, directory: Path, web: SimulatedWeb, seed: int, *, own_disks: bool = False, kind: type[Crawl] = Crawl
    ) -> None:
        """Each node is a process of this kind."""
        self.directory = directory
        self._kind = kind
        self.own_disks = own_disks
        self._seed = seed
        self.web = web
        self._stack = ExitStack()
        self.server: Replicated = self._stack.enter_context(Replicated())
        self.replica = self._stack.enter_context(Replica(self.server))
        self._server_since_s = time.monotonic()
        self._was_finished = False
        self.repeats = Repeats(self.server, NAME, PARTITIONS)
        self.nodes = [self._node(number) for number in range(NODES)]
        if own_disks:
            self.nodes[0].set_clock_wrong(ShiftedClock(directory / "clock"))
        self.asleep_ms: list[tuple[int, int]] = []
        self.problems: list[str] = []
        self.said: list[str] = []
        self._busy: set[str] = set()
        self._struck: list[tuple[int, str]] = []
        self._later: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()
        self._began_s = time.monotonic()
        self._crawl_since_s = 0.0

    def __enter__(self) -> Self:
        for node in self.nodes:
            node.crawl.start()
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            node.crawl.__exit__(None)
        self._stack.close()

    def _node(self, number: int) -> Node:
        link = self._stack.enter_context(FaultyLink(self.server.socket_path, self._seed * NODES_MAX + number))
        return self.node_of(f"n{number}", link)

    def enter(self, context: AbstractContextManager[T]) -> T:
        """Let it end with the world."""
        return self._stack.enter_context(context)

    def pages_directory(self) -> Path:
        """All WARC files; those of nodes that were killed are closed."""
        recover_directory(self.directory / "warc")
        return self.directory / "warc"

    def exported(self) -> list[dict[str, Any]]:
        """The lines of an export of the crawl when it is over; none if nobody asks."""
        return []

    def node_of(self, name: str, link: FaultyLink) -> Node:
        """A node that speaks to Redis by this link."""
        state, more = "state", {}
        if self.own_disks:
            state = f"state-{name}"
            more = {**STORE_SETTINGS, "BIGCRAWL_STORE_URL": (self.directory / "store").as_uri()}
        settings = self.settings_of(name, link, self.directory / state, self.directory / "warc") | more
        return Node(name, link, self._kind(self.directory / name, self.web.seeds, settings, name=NAME))

    def settings_of(self, name: str, link: FaultyLink, state: Path, warc: Path) -> dict[str, Any]:
        """The settings of a node with these directories."""
        return {
            **SETTINGS,
            "BIGCRAWL_NODE": name,
            "BIGCRAWL_STATE_DIR": state,
            "BIGCRAWL_WARC_DIR": warc,
            "BIGCRAWL_REDIS_URL": link.url,
            "FAULTY_DISK": self.directory / f"{name}.disk",
        }

    def add_node(self) -> Node | None:
        """Another node joins, unless there are as many as there may be."""
        if len(self.nodes) == NODES_MAX:
            return None
        node = self._node(len(self.nodes))
        self.nodes.append(node)
        self.start(node)
        return node

    def fail_over(self) -> None:
        """Kill Redis, and let its replica take its place; another one follows that."""
        self.server.kill()
        self.replica.take_over()
        self.server, self._server_since_s = self.replica, time.monotonic()
        for node in self.nodes:
            node.link.lead_to(self.server.socket_path)
        self.replica = self._stack.enter_context(Replica(self.server))

    def copy_of(self, aof: Path) -> Path:
        """A copy of an append-only file, which stays as it is."""
        copy = self.directory / f"aof{next(self._numbers)}"
        shutil.copytree(aof, copy)
        return copy

    def say(self, text: str) -> None:
        """A line of the run's story, with the time."""
        self.said.append(f"{time.monotonic() - self._began_s:8.2f}  {int(time.time() * 1000)}  {text}")

    def is_free(self, victim: str) -> bool:
        return victim not in self._busy

    def occupy(self, victim: str) -> None:
        """It has its fault, and no other until `release`."""
        self._busy.add(victim)
        self._struck.append((len(self.said), victim))

    def struck_since(self, line: int) -> set[str]:
        """What has or had a fault since this line of the story, or had one then."""
        return self._busy | {victim for at, victim in self._struck if at >= line}

    def release(self, victim: str) -> None:
        self.later(REST_S, lambda: self._busy.discard(victim))

    def later(self, seconds: float, *acts: Callable[[], object]) -> None:
        for act in acts:
            heapq.heappush(self._later, (time.monotonic() + seconds, next(self._numbers), act))

    def live(self, seconds: float) -> None:
        """Let time pass; what is due is mended, and nodes that ended unasked are noted and started again."""
        until_s = time.monotonic() + seconds
        while (now_s := time.monotonic()) < until_s and not self.is_finished():
            while self._later and self._later[0][0] <= now_s:
                heapq.heappop(self._later)[2]()
            self._look_after()
            if not self._crawl_since_s and self.server.is_up and self.server.client.exists(_CRAWL):
                self._crawl_since_s = time.monotonic()
            pause(min(POLL_S, max(0.0, until_s - now_s)))

    def mend_all(self) -> None:
        """Mend now what would be later, and wait for what must end first."""
        while self._later:
            due, self._later = sorted(self._later), []
            for _, _, act in due:
                act()
            pause(POLL_S)

    def is_finished(self) -> bool:
        """Whether the crawl says so; while Redis is away, nothing does."""
        is_finished = self.server.is_up and bool(self.server.client.hget(_CRAWL, "finished"))
        self._was_finished |= is_finished
        return is_finished

    def crawl_age_s(self) -> float:
        """For how long Redis has known the crawl."""
        return time.monotonic() - self._crawl_since_s if self._crawl_since_s else 0.0

    def server_age_s(self) -> float:
        """For how long this Redis has been the one that nodes speak to."""
        return time.monotonic() - self._server_since_s

    def wait_for_end(self, still_s: float, poll_s: float = 0.5) -> None:
        """Let the crawl end by itself; a problem if nothing was fetched for so long, or a node does not end."""
        fetched, since_s = 0, time.monotonic()
        while not self.is_finished():
            self.live(poll_s)
            if (now := self.web.log.stat().st_size) != fetched:
                fetched, since_s = now, time.monotonic()
            if time.monotonic() - since_s > still_s:
                self.problems.append(f"nothing was fetched for {still_s:g} s and the crawl is not finished")
                return
        for node in self.nodes:
            assert node.crawl.process is not None
            try:
                status = node.crawl.process.wait(60)
            except subprocess.TimeoutExpired:
                self.problems.append(f"{node.name} has not ended a minute after the crawl was finished")
            else:
                self._judge(node, status)

    def start(self, node: Node) -> None:
        node.crawl.start()
        self.say(f"{node.name} started")

    def kill(self, node: Node) -> None:
        node.crawl.kill()
        self.say(f"{node.name} killed, {len(self.repeats.in_process(node.name))} in process")

    def terminate(self, node: Node, then: Callable[[], object]) -> None:
        """SIGTERM; what fetches are given up is fetched again. The others live on until it has ended."""
        self.repeats.give_up(node.name)
        node.crawl.terminate()
        until_s = time.monotonic() + STOP_S

        def look() -> None:
            if node.status is None and time.monotonic() < until_s:
                self.later(POLL_S, look)
                return
            if node.status is None:
                self.problems.append(f"{node.name} has not ended {STOP_S} s after SIGTERM: {node.last_words()}")
                node.crawl.kill()
            else:
                self._judge(node, node.status)
            self.say(f"{node.name} ended, {len(self.repeats.in_process(node.name))} in process")
            then()

        look()

    def _look_after(self) -> None:
        for node in self.nodes:
            if node.status is None or not self.is_free(node.name) or self.is_finished():
                continue
            if node.status == 0 and self._was_finished:
                self.say(f"{node.name} ended with the crawl, and Redis has forgotten that it was finished")
            else:
                self.problems.append(f"{node.name} ended unasked with {node.status}: {node.last_words()}")
                self.say(f"{node.name} ended unasked with {node.status}")
            self.start(node)

    def _judge(self, node: Node, status: int) -> None:
        # Before Scrapy has its signal handlers SIGTERM ends the interpreter itself.
        if status not in (0, -signal.SIGTERM):
            self.problems.append(f"{node.name} ended with {status}: {node.last_words()}")

    def mend_disk(self, node: Node) -> None:
        disk.say(node.word, "")
