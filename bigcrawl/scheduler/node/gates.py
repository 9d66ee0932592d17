from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.fetched_elsewhere import FetchedElsewhere
from bigcrawl.scheduler.gates.address_check import AddressCheck, LookupLimits, local_names
from bigcrawl.scheduler.gates.batcher import QuestionBatcher
from bigcrawl.scheduler.gates.dns_answers import SharedDnsAnswers
from bigcrawl.scheduler.gates.gatekeeper import Gatekeeper
from bigcrawl.scheduler.gates.passages import HostGates, PolitenessSpaces
from bigcrawl.scheduler.gates.robots import RobotsGate
from bigcrawl.scheduler.gates.robots_redirects import RobotsRedirects
from bigcrawl.scheduler.gates.shared_hosts import SharedHosts
from bigcrawl.scheduler.gates.starts import FetchStarts, HostLoans
from bigcrawl.scheduler.node.set_aside import Aside, Sweeper

if TYPE_CHECKING:
    from bigcrawl.politeness.dns_cache import DnsCache
    from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl
    from bigcrawl.scheduler.gates.interfaces import Fetch
    from bigcrawl.scheduler.handout.engine_side import EngineSide
    from bigcrawl.scheduler.handout.handout import Handout
    from bigcrawl.scheduler.handout.observers import Observers
    from bigcrawl.scheduler.owner.ownership import Ownership


class Gates:
    def __init__(
        self,
        crawl: JoinedCrawl,
        dns: DnsCache,
        fetch: Fetch,
        handout: Handout,
        ownership: Ownership,
        observers: Observers,
        engine: EngineSide,
    ) -> None:
        config, client, clock, node_id = crawl.config, crawl.client, crawl.clock, crawl.node_id
        name, held, paces, speed = config.crawl.name, handout.held, handout.paces, handout.speed
        self._crawl = crawl
        self._ownership = ownership
        self.dns = dns
        self.answers = SharedDnsAnswers(client, CrawlKeys(name), config.dns.shared_answers)
        self.aside = Aside(client, held, ownership, config.politeness.host_connections)
        self.shared_hosts = SharedHosts(config, node_id, client, clock, paces, held)
        lookups = LookupLimits(config, clock, crawl.pld_of, self._budget_of, observers.record_look_up)
        resolves_here = local_names(config.dns)
        addresses = AddressCheck(config.politeness, dns, lookups, self.aside, resolves_here, engine.on_fatal)
        spaces, longest_ms = PolitenessSpaces(config.pace, paces, crawl.pld_of), self.shared_hosts.longest_delay_ms
        passages = HostGates(node_id, client, clock, paces, spaces, name, longest_ms)
        try_start = handout.start_gaps.try_start_until
        starts = FetchStarts(addresses, passages, self.shared_hosts, clock, speed.wait_for_permit, try_start)
        self.starts = starts
        fetch = speed.with_permits(fetch)
        self.loans = HostLoans(crawl, starts)
        redirects = RobotsRedirects(crawl, starts, self.loans, fetch, handout.host_gaps, observers.record_robots)
        self.robots = RobotsGate(config, client, clock, starts, redirects, paces, handout.health.fails)
        asked_max_ms = config.politeness.retry_after_max_ms
        heads = None
        if config.filters.head_first:
            from bigcrawl.scheduler.gates.heads import HeadFirst
            from bigcrawl.scheduler.rules.page_rules import HeadRules

            heads = HeadFirst(HeadRules(config), starts, fetch, handout.host_gaps, asked_max_ms)
        self._fingerprints: QuestionBatcher[int, bool] | None = None
        self.elsewhere = FetchedElsewhere(self._ask_fingerprints)
        self.sweeper = Sweeper(client, ownership, self.robots, clock)
        self.gatekeeper = Gatekeeper(starts, self.robots, heads, self.elsewhere, handout, self.aside, self.sweeper)

    def __repr__(self) -> str:
        return f"<Gates {self.gatekeeper!r}>"

    async def _budget_of(self, host: str) -> int:
        return await self._ownership.budgets.of_host(self._crawl.partition_of_host(host), host)

    async def _ask_fingerprints(self, fingerprint: int) -> bool:
        if self._fingerprints is None:
            from bigcrawl.scheduler.crawl.fingerprints import Fingerprints

            self._fingerprints = QuestionBatcher(Fingerprints(self._crawl.client, self._crawl.config.crawl.name).have)
        return await self._fingerprints.ask(fingerprint)

    def open(self) -> None:
        if self._crawl.config.dns.shared_answers:
            self.dns.use_store(self.answers)

    async def close(self) -> None:
        await self.gatekeeper.close()
        self.dns.drop_store(self.answers)
        await self.answers.close()
        await self.robots.close()
