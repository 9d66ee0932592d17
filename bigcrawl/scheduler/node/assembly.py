"""Makes all parts of a node but its loops, each after those that it needs. Each room makes its own parts."""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

from bigcrawl.politeness.addresses import server_of
from bigcrawl.politeness.dns_cache import GRACE_MS, DnsCache
from bigcrawl.scheduler.budgets.policy import NO_POLICY
from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl
from bigcrawl.scheduler.crawl.start_requests import StartRequests
from bigcrawl.scheduler.handout.handout import Handout
from bigcrawl.scheduler.handout.observers import NodeSide, Observers
from bigcrawl.scheduler.node.control import Control
from bigcrawl.scheduler.node.exchange import UrlExchange
from bigcrawl.scheduler.node.gates import Gates
from bigcrawl.scheduler.node.heartbeat import Heartbeat
from bigcrawl.scheduler.node.link_graph import LinkGraph
from bigcrawl.scheduler.node.outbox import Outbox
from bigcrawl.scheduler.node.progress import CrawlProgress
from bigcrawl.scheduler.node.trials import Trials
from bigcrawl.scheduler.node.troubles import Troubles
from bigcrawl.scheduler.node.workload import Workload
from bigcrawl.scheduler.owner.crawl_budgets import CrawlBudgets
from bigcrawl.scheduler.owner.ownership import Ownership
from bigcrawl.scheduler.records.held_urls import HeldUrls

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.budgets.units import BudgetUnits
    from bigcrawl.scheduler.gates.interfaces import Fetch
    from bigcrawl.scheduler.handout.engine_side import EngineSide
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.records.held import HeldUrl

TROUBLE_MAX = 300


class Parts:
    """The parts of a node.

    Attributes:
        troubles: which loops fail.
        gates: decide whether and when a taken URL may be fetched.
        trials: repeated tries of URLs that may have killed a node.
        heartbeat: the node's report to others.
        starts: the start requests.
    """

    def __init__(
        self,
        config: Config,
        client: RedisClient,
        dns: DnsCache,
        clock: Clock,
        fetch: Fetch,
        engine: EngineSide,
        node_id: str = "",
    ) -> None:
        """Make the parts, without asking Redis or writing to the disk.

        `dns` may be shared with other crawls of this process; an empty `node_id` is replaced by a random one. Raises
        ConfigError if a part does not accept its settings.
        """
        node_id = node_id or f"{config.crawl.node}-{uuid.uuid4().hex[:8]}"
        self.crawl = crawl = JoinedCrawl(config, client, clock, node_id)
        self.engine = engine
        self.troubles = Troubles(client)
        units = _units_of(crawl)
        self.outbox = outbox = _outbox_of(crawl, dns, units)
        callbacks = engine.callbacks
        budgets = CrawlBudgets(config, client, crawl.pld_of, crawl.pld_key, callbacks, units)
        side = FeatureSide(crawl, dns, outbox, budgets, engine, self._was_fetched)
        self.observers = observers = Observers.of_node(HeldUrls(engine.storage), outbox, side)
        self.handout = handout = Handout(crawl, engine, outbox, observers)
        self.workload = workload = Workload(config.frontier, handout, outbox)
        offer_hint, may_rest = outbox.offer_hint, workload.may_rest
        self.ownership = ownership = Ownership(crawl, handout, offer_hint, may_rest, budgets, self._record_ended)
        self.gates = gates = Gates(crawl, dns, fetch, handout, ownership, observers, engine)
        self.exchange = UrlExchange(crawl, ownership, handout, outbox, gates, engine, observers)
        self.trials = Trials(client, ownership, handout)
        self.control = Control(crawl, handout, gates, ownership.crawl_budgets, outbox.forget_recent)
        recent = self.exchange.recent
        recent.set_watcher(lambda: self.control.is_watched, lambda: self.control.watched_host)
        self.progress = CrawlProgress(crawl, ownership, handout, outbox, self.exchange)
        self.heartbeat = Heartbeat(crawl, ownership, handout, gates.shared_hosts, self._report, recent)
        self.starts = StartRequests(crawl, self.heartbeat.send)
        outbox.call_when_sent(self._record_sent)

    def __repr__(self) -> str:
        return f"<Parts of {self.crawl.node_id}>"

    def _record_sent(self, partition: int, urls: int) -> None:
        is_elsewhere = partition not in self.ownership.owned
        self.observers.record_sent(urls, is_elsewhere=is_elsewhere)
        if is_elsewhere:
            self.crawl.arrivals.add(partition)

    def _record_ended(self, owned: OwnedPartition, ended: list[HeldUrl]) -> None:
        self.exchange.record_ended(owned, ended)

    def _report(self) -> dict[str, Any]:
        return {
            "outbox": self.outbox.waiting,
            "pages": self.exchange.pages,
            "rate": round(self.exchange.rate(), 1),
            **self.exchange.recent.reported(self.crawl.clock.monotonic_ms()),
            "is_paused": self.engine.is_paused(),
            "crowded": self.workload.is_crowded,
            "trouble": self.troubles.text[:TROUBLE_MAX],
            **self.observers.reported(),
        }

    def _was_fetched(self, held: HeldUrl) -> bool:
        return self.observers.was_fetched(held)


class FeatureSide(NodeSide):
    def __init__(
        self,
        crawl: JoinedCrawl,
        dns: DnsCache,
        outbox: Outbox,
        budgets: CrawlBudgets,
        engine: EngineSide,
        was_fetched: Callable[[HeldUrl], bool],
    ) -> None:
        membership = crawl.membership
        self.config = crawl.config
        self.client = crawl.client
        self.clock = crawl.clock
        self.node = crawl.node_id
        self.partitions = crawl.config.crawl.partitions
        self.pld_of = crawl.pld_of
        self.pld_key = crawl.pld_key
        self.key_of = crawl.key_of
        self.look_up = dns.lookup
        self.offer_hint = outbox.offer_hint
        self.carry = outbox.carry
        self.repeated = lambda: outbox.dropped_recent
        self.sent_bytes = engine.sent_bytes
        self.announce = engine.announce
        self.was_fetched = was_fetched
        self.limited = budgets.limited
        self.limit_of = budgets.limit_of
        self.reports = lambda: membership.reports


def _units_of(crawl: JoinedCrawl) -> BudgetUnits | None:
    budget = crawl.config.budget
    if not budget.units:
        return None
    from bigcrawl.scheduler.budgets.units import BudgetUnits

    return BudgetUnits(budget.units, budget.unit_links, crawl.pld_of, crawl.pld_key, crawl.private_pld_of)


def _outbox_of(crawl: JoinedCrawl, dns: DnsCache, units: BudgetUnits | None) -> Outbox:
    config = crawl.config
    name, partitions, urls_max = config.crawl.name, config.crawl.partitions, config.frontier.outbox_urls_max
    # Without budgets only some prioritizers need in-degrees.
    needs_links = config.budget.policy != NO_POLICY or config.frontier.counts_links
    source_of = partial(_server_key, crawl, dns) if config.budget.in_degree_by == "address" else None
    link_graph = LinkGraph(crawl.pld_of, crawl.pld_key, partitions, source_of, units) if needs_links else None
    return Outbox(crawl.node_id, name, urls_max, crawl.clock, link_graph, partitions, config.frontier.step_ms // 2)


def _server_key(crawl: JoinedCrawl, dns: DnsCache, host: str) -> int | None:
    """Return the key of the server of a host that was just fetched from; None if its address is no longer known."""
    found = dns.cached_addresses(host, GRACE_MS)
    return crawl.pld_key(server_of(found[0])) if found else None
