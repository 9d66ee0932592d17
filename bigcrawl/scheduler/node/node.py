"""One node of a crawl: the loops that carry URLs between Scrapy, Redis and the partitions.

    pump   when a batch is worth it: flush the outbox; acknowledge what ended and take what is due, in one call
    fold   when something happens to owned partitions: steps that are due, their files in a worker thread
    beat   about once a second: heartbeat, what has arrived for owned partitions, leases; waits for no file
    guard  when a lease may be over: gives up the fetches under way; waits for nothing
    watch  about once a second: which node should own what, snoozed hosts, budgets, samples, is the crawl finished?
    steer  a few times a second: orders to the running crawl, its speed, concurrent fetches
    tidy   once a minute: free memory goes back to the system

Only this table lists them; each is a module of `node.loops`. A batch is worth a round trip when half of the URLs
that the node may hold have ended, 400 ms have passed, or the engine has nothing to do (docs/decisions/0164).

Scrapy's engine uses `Node.offer` and `handout.buffer.pop`: memory only, no waiting, no exception. The loops survive a
Redis that is away: they try again, and `node.loops.recovery` repairs what Redis may have forgotten before anything else
is sent. `node.life` has how a node joins its crawl and leaves it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.node.life import Arrival, Departure
from bigcrawl.scheduler.node.loops.beat import Beat
from bigcrawl.scheduler.node.loops.fold import Fold
from bigcrawl.scheduler.node.loops.guard import Guard
from bigcrawl.scheduler.node.loops.loop import LoopRunner
from bigcrawl.scheduler.node.loops.pump import Pump
from bigcrawl.scheduler.node.loops.recovery import Recovery
from bigcrawl.scheduler.node.loops.room import TakeRoom
from bigcrawl.scheduler.node.loops.steer import Steer
from bigcrawl.scheduler.node.loops.tidy import Tidy
from bigcrawl.scheduler.node.loops.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Collection

    from bigcrawl.scheduler.node.assembly import Parts
    from bigcrawl.scheduler.records.queued_url import QueuedUrl


class Node:
    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.crawl = crawl = parts.crawl
        self.config = crawl.config
        self.node_id = crawl.node_id
        self.handout = parts.handout
        self.outbox = parts.outbox
        self.workload = parts.workload
        self.progress = parts.progress
        self.starts = parts.starts
        self.link_graph = parts.outbox.link_graph
        self.observers = parts.observers
        self.ownership = parts.ownership
        self.membership = crawl.membership
        self.beat = Beat(parts)
        self.recovery = Recovery(parts, self.beat)
        self.room = TakeRoom(parts)
        self.pump = Pump(parts, self.room, self.recovery)
        parts.handout.lanes.open_lanes(
            offer=parts.gates.gatekeeper.offer,
            wake=self.pump.wake,
            hosts=lambda: self.ownership.hot_hosts,
            is_alone=lambda: not parts.gates.shared_hosts.are_kept,
        )
        self.fold = Fold(parts, self.pump.wake)
        self.guard = Guard(parts)
        self.watch = Watch(parts)
        self.steer = Steer(parts, self.pump.wake)
        self.tidy = Tidy()
        loops = (self.pump, self.fold, self.beat, self.guard, self.watch, self.steer, self.tidy)
        self.runner = LoopRunner(loops, parts.troubles, self.ownership.set_apart_by, parts.engine.on_fatal)
        self.arrival = Arrival(parts, self.beat, self.watch)
        self.departure = Departure(parts, self.runner, self.beat, self.pump, self.recovery)

    def __repr__(self) -> str:
        return f"<Node {self.node_id} {self.ownership!r} {self.handout!r} {self.outbox!r}>"

    async def start(self) -> None:
        await self.arrival.join()
        self.runner.start()

    def offer(self, url: QueuedUrl) -> None:
        self.offer_each((url,))

    def offer_each(self, urls: Collection[QueuedUrl]) -> None:
        offer, partition_of_host = self.outbox.offer, self.crawl.partition_of_host
        for url in urls:
            offer(url, partition_of_host(url.host))
        if urls and self.progress.is_finished:
            self.progress.go_on()
