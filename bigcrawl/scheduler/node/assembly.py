"""Makes all parts of a node but its loops, each after those that it needs.

If two parts need each other, the earlier one learns of the later one in `_tie`, and nowhere else.
"""

from __future__ import annotations

import asyncio
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.budgets.mirrors import is_sample, sample_secret
from bigcrawl.scheduler.budgets.policies import NO_POLICY
from bigcrawl.scheduler.budgets.same_content import SameContent
from bigcrawl.scheduler.budgets.wildcard_dns import WildcardDns
from bigcrawl.scheduler.crawl.arrivals import Arrivals
from bigcrawl.scheduler.crawl.fetched_elsewhere import FetchedElsewhere
from bigcrawl.scheduler.crawl.fingerprints import Fingerprints
from bigcrawl.scheduler.crawl.membership import Membership
from bigcrawl.scheduler.crawl.samples import Samples
from bigcrawl.scheduler.crawl.shared_tallies import SharedTallies
from bigcrawl.scheduler.crawl.start_requests import StartRequests
from bigcrawl.scheduler.crawl.survey import FinishCheck
from bigcrawl.scheduler.gates.address_check import AddressCheck
from bigcrawl.scheduler.gates.batcher import Batcher
from bigcrawl.scheduler.gates.delays import Paces
from bigcrawl.scheduler.gates.dns_answers import SharedAnswers
from bigcrawl.scheduler.gates.gatekeeper import Gatekeeper
from bigcrawl.scheduler.gates.lookups import Lookups
from bigcrawl.scheduler.gates.passages import Passages
from bigcrawl.scheduler.gates.proxies import local_names
from bigcrawl.scheduler.gates.robots import Robots
from bigcrawl.scheduler.gates.robots_redirects import RobotsRedirects
from bigcrawl.scheduler.gates.robots_starts import HeadFirst, RobotsStarts
from bigcrawl.scheduler.gates.shared_hosts import SharedHosts
from bigcrawl.scheduler.gates.spaces import Spaces
from bigcrawl.scheduler.gates.speed import SpeedControl
from bigcrawl.scheduler.handout.handout import Handout
from bigcrawl.scheduler.handout.page_contents import PageContents
from bigcrawl.scheduler.handout.revisits import Revisits, policy_of
from bigcrawl.scheduler.node.control import Control
from bigcrawl.scheduler.node.exchange import UrlExchange
from bigcrawl.scheduler.node.failed_fetches import FailedFetches
from bigcrawl.scheduler.node.forbidden_sweep import Sweeper
from bigcrawl.scheduler.node.heartbeat import Heartbeat, Leases
from bigcrawl.scheduler.node.joined_crawl import JoinedCrawl
from bigcrawl.scheduler.node.last_hosts import LastHosts
from bigcrawl.scheduler.node.link_graph import LinkGraph, PageVotes
from bigcrawl.scheduler.node.outbox import Outbox
from bigcrawl.scheduler.node.progress import Activity, CrawlProgress
from bigcrawl.scheduler.node.set_aside import Aside
from bigcrawl.scheduler.node.trials import Trials
from bigcrawl.scheduler.node.troubles import Troubles
from bigcrawl.scheduler.node.workload import Workload
from bigcrawl.scheduler.owner.crawl_budgets import CrawlBudgets
from bigcrawl.scheduler.owner.ownership import Ownership
from bigcrawl.scheduler.partition.file_work import FileWork
from bigcrawl.scheduler.partition.yielding_files import YieldingFiles
from bigcrawl.scheduler.queues.prioritizers import counts_links, needs_ranks
from bigcrawl.scheduler.rules.head_rules import HeadRules
from bigcrawl.store.objects import Objects
from bigcrawl.tallies.tallies import Tallies

if TYPE_CHECKING:
    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.politeness.dns_cache import DnsCache
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.gates.fetched import Fetch
    from bigcrawl.scheduler.node.engine_side import EngineSide
    from bigcrawl.scheduler.records.held import HeldUrl


class Parts:
    """The parts that a node is made of."""

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
        """Make the parts; nothing is asked of Redis or written to the disk.

        Args:
            config: the settings.
            client: the crawl's Redis.
            dns: possibly shared with other crawls of this process.
            clock: of all parts.
            fetch: fetches robots.txt files.
            engine: the engine that this node takes URLs for.
            node_id: identifies this node to others; made up if empty.

        Raises:
            ConfigError: a part does not accept its settings.
        """
        self.config = config
        self.client = client
        self.dns = dns
        self.clock = clock
        self.engine = engine
        self.node_id = node_id or f"{config.crawl.node}-{uuid.uuid4().hex[:8]}"
        self.objects = Objects(config.store.url) if config.store.url else None
        self.crawl = JoinedCrawl(client, config.crawl, self.objects)
        self.troubles = Troubles(client)
        self.worker = ThreadPoolExecutor(1, thread_name_prefix="bigcrawl-fold")
        self.folding = asyncio.Lock()  # its holder may step, claim and release partitions
        self.tallies = Tallies()
        self._make_way_out()
        self._make_way_in()
        self._make_ownership()
        self._make_gates(fetch)
        self._make_exchange()
        self._make_signs_of_life()
        self._tie()

    def __repr__(self) -> str:
        return f"<Parts of {self.node_id}>"

    def _make_way_out(self) -> None:
        """The parts that discovered URLs pass on their way out of the node."""
        config, crawl = self.config, self.crawl
        # Without budgets nobody needs traps, and only some prioritizers need in-degrees.
        needs_links = self._has_budgets or counts_links(config.frontier.prioritizer)
        has_traps = self._has_budgets and bool(config.traps.share)
        partitions = config.crawl.partitions
        self.link_graph = LinkGraph(crawl.pld_of, crawl.pld_key, partitions) if needs_links else None
        has_ranks = needs_ranks(config.frontier.prioritizer)
        counts_votes = has_ranks or config.frontier.link_votes
        key_of, partition_of = self._key_of_url, crawl.partition_of_host
        self.votes = PageVotes(key_of, partition_of, has_ranks=has_ranks) if counts_votes else None
        self.same_content = SameContent(config.traps.same_share, crawl.pld_of, crawl.pld_key) if has_traps else None
        self.wildcards = WildcardDns(config.traps.wildcard_hosts, self.dns.lookup, crawl.pld_key) if has_traps else None
        urls_max = config.frontier.outbox_urls_max
        self.outbox = Outbox(
            self.node_id,
            config.crawl.name,
            urls_max,
            self.clock,
            self.link_graph,
            partitions,
            self.votes,
            config.frontier.step_ms // 2,
        )
        self.outbox.tell_sent_to(self._note_sent)

    @property
    def _has_budgets(self) -> bool:
        return self.config.budget.policy != NO_POLICY

    def _pld_key_of_host(self, host: str) -> int:
        return self.crawl.pld_key(self.crawl.pld_of(host))

    @cached_property
    def _sample_secret(self) -> int:
        return sample_secret(self.crawl.keys.of_bytes)  # known once the node has joined

    def _is_sample(self, content: int) -> bool:
        return is_sample(content, self._sample_secret)

    def _key_of_url(self, canonical: str) -> int:
        return self.crawl.keys.of_url(canonical)

    def _make_way_in(self) -> None:
        """The parts that hold URLs and hand them to the engine."""
        self.paces = Paces(self.config, self.crawl.pld_of)
        self.speed = SpeedControl(self.config, self.client, self.clock, self.wake_engine)
        revisits = Revisits(policy_of(self.config.revisits), self.config.revisits.visits_max, self.client.now_ms)
        self.handout = Handout(
            self.config,
            self.clock,
            self.outbox,
            self.paces,
            self.speed,
            self._ask_again,
            self.tallies,
            revisits=revisits,
        )
        seen, partitions = self.config.frontier.content_seen, self.config.crawl.partitions
        held, has_sketches = self.handout.held, seen == "near"
        pld_key_of = self._pld_key_of_host if self._has_budgets and self.config.traps.mirror_share else None
        self.contents = (
            PageContents(
                held,
                self.outbox,
                partitions,
                has_sketches=has_sketches,
                pld_key_of=pld_key_of,
                is_sample=self._is_sample,
            )
            if seen != "off"
            else None
        )
        self.workload = Workload(self.config.frontier, self.handout, self.outbox)

    def _make_ownership(self) -> None:
        config, client, clock = self.config, self.client, self.clock
        self.membership = Membership(config, self.node_id, self.handout.in_process)
        self.reputation = CrawlBudgets(config, client, self.crawl.pld_of, self.crawl.pld_key, self.engine.callbacks)
        file_work = FileWork(clock, config.frontier.lease_ms)
        self.arrivals = Arrivals(client, config.crawl.name)
        self.ownership = Ownership(
            config,
            client,
            self.membership,
            self.handout.held,
            lambda: self.handout.ends.late_ms,
            clock,
            self.worker,
            YieldingFiles(self.workload.may_rest, file_work.note_sign),
            file_work,
            self.reputation,
            self.paces,
            self.outbox.offer_hint,
            self.arrivals,
            self.objects,
        )

    def _make_gates(self, fetch: Fetch) -> None:
        config, client, clock, held = self.config, self.client, self.clock, self.handout.held
        self.answers = SharedAnswers(client, CrawlKeys(config.crawl.name), config.dns.shared_answers)
        self.aside = Aside(client, held, self.ownership, config.politeness.host_connections)
        self.shared_hosts = SharedHosts(config, self.node_id, client, clock, self.paces, held)
        lookups = Lookups(config, clock, self.crawl.pld_of, self._budget_of, self.wildcards)
        resolves_here, on_fatal = local_names(config.dns), self.engine.on_fatal
        addresses = AddressCheck(config.politeness, self.dns, lookups, self.aside, resolves_here, on_fatal)
        spaces = Spaces(config.pace, self.paces, self.crawl.pld_of)
        longest_ms = self.shared_hosts.longest_delay_ms
        passages = Passages(self.node_id, client, clock, self.paces, spaces, config.crawl.name, longest_ms)
        starts = RobotsStarts(addresses, passages, clock, self.handout.start_gaps.try_start_until)
        fetch = self.speed.paced(fetch)
        self.robots = self._make_robots(starts, fetch)
        asked_max_ms = config.politeness.retry_after_max_ms
        heads = HeadFirst(HeadRules(config), starts, fetch, self.handout.host_gaps, clock, asked_max_ms)
        self.elsewhere = FetchedElsewhere(Batcher(Fingerprints(client, config.crawl.name).have).ask)
        self.sweeper = Sweeper(client, self.ownership, self.robots, clock)
        self.gatekeeper = Gatekeeper(
            self.robots,
            addresses,
            passages,
            clock,
            self.handout,
            self.sweeper,
            self.speed.turn,
            self.aside,
            self.shared_hosts,
            self.elsewhere,
            heads,
        )

    def _make_robots(self, starts: RobotsStarts, fetch: Fetch) -> Robots:
        config, client, clock = self.config, self.client, self.clock
        partition_of = self.crawl.partition_of_host
        gaps = self.handout.host_gaps
        redirects = RobotsRedirects(
            config,
            client,
            clock,
            starts,
            fetch,
            partition_of,
            self.shared_hosts,
            gaps,
            self.tallies,
            self.arrivals.note,
        )
        return Robots(config, client, clock, starts, redirects, self.paces, self.handout.health.fails)

    async def _budget_of(self, host: str) -> int:
        return await self.ownership.budgets.of_host(self.crawl.partition_of_host(host), host)

    def _ask_again(self, held: HeldUrl) -> None:
        self.gatekeeper.offer(held)

    def wake_engine(self) -> None:
        """Make the engine ask for URLs, unless the node is still joining and the engine is not open yet."""
        if self.workload.is_running:
            self.handout.wake_engine()

    def _make_exchange(self) -> None:
        config, client, clock = self.config, self.client, self.clock
        self.failed = FailedFetches(client, clock, config.crawl.name, self.crawl.pld_of)
        self.exchange = UrlExchange(
            config,
            client,
            clock,
            self.ownership,
            self.handout,
            self.outbox,
            self.aside,
            self.engine.callbacks,
            self.failed,
            self.reputation.bytes_account,
            self._count_page,
        )
        self.shared_tallies = SharedTallies(client, clock, config.crawl.name, self.membership, self.tallies)
        self.trials = Trials(client, self.ownership, self.handout)
        self.control = Control(
            config,
            self.node_id,
            client,
            clock,
            self.speed,
            self.aside,
            self.crawl.pld_of,
            self.reputation.note_blacklist,
            self.reputation.note_change,
            self.paces,
            self.elsewhere.adopt,
        )
        crawl, reputation, has_method = config.crawl, self.reputation, self.engine.callbacks.has
        self.finish = FinishCheck(client, crawl.name, crawl.partitions, lambda: reputation.mark, has_method)
        news, held = self.ownership.table.news, self.handout.held
        self.activity = Activity(news, held, self.outbox, self.exchange, self.membership)
        self.progress = CrawlProgress(crawl, client, clock, self.exchange, self.finish, self.activity)
        self.samples = Samples(client, crawl.name, self.membership)

    def _note_sent(self, partition: int, urls: int) -> None:
        is_elsewhere = partition not in self.ownership.owned
        self.tallies.note_sent(urls, is_elsewhere=is_elsewhere)
        if is_elsewhere:
            self.arrivals.note(partition)

    def _count_page(self, held: HeldUrl) -> None:
        self.tallies.note_page(held.host, self.crawl.pld_of(held.host), held.address, held.fetched_bytes)

    def _make_signs_of_life(self) -> None:
        config, client, clock = self.config, self.client, self.clock
        self.last_hosts = LastHosts(config, client, clock, self.handout, self.ownership, self.membership)
        self.heartbeat = Heartbeat(
            client,
            clock,
            self.membership,
            self.ownership,
            self.handout,
            self.outbox,
            self.exchange,
            self.last_hosts,
            self.shared_hosts,
            self.workload,
            self.troubles,
            self.engine.is_paused,
        )
        lease_ms = config.frontier.lease_ms
        self.leases = Leases(client, clock, self.ownership, self.handout, self.workload, lease_ms)
        self.starts = StartRequests(config, client, self.membership, self.node_id, self.heartbeat.send)

    def _tie(self) -> None:
        """Connect earlier parts to later ones."""
        engine, handout = self.engine, self.handout
        handout.connect_engine(wake=engine.wake, break_off=engine.break_off, on_limit=engine.note_limit)
        handout.held.store_pages_in(engine.storage)
        handout.held.tell_left_hosts_to(self.shared_hosts.note_end)
        self.ownership.reconciliation.tell_ended_to(self.exchange.note_ended)
        engine.note_limit(handout.crowd.limit)
