from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from bigcrawl.redisdb.server_needs import bytes_needed, look_at_needs
from bigcrawl.scheduler.crawl.crawls_spider import take_for_spider
from bigcrawl.scheduler.crawl.settings_in_force import record_settings

if TYPE_CHECKING:
    from bigcrawl.scheduler.node.assembly import Parts
    from bigcrawl.scheduler.node.loops.beat import Beat
    from bigcrawl.scheduler.node.loops.watch import Watch

logger = logging.getLogger(__name__)


class Arrival:
    def __init__(self, parts: Parts, beat: Beat, watch: Watch) -> None:
        self._parts = parts
        self._beat = beat
        self._watch = watch

    def __repr__(self) -> str:
        return f"<Arrival of {self._parts.crawl.node_id}>"

    async def join(self) -> None:
        """Check that the crawl can be joined, join it, and claim the first partitions."""
        parts = self._parts
        config, membership, progress = parts.crawl.config, parts.crawl.membership, parts.progress
        client = parts.crawl.client
        await client.ping()
        for fault in await look_at_needs(client, self._bytes_in_redis()):
            logger.warning("%(fault)s", {"fault": fault})
        if config.crawl.redis_url:
            from bigcrawl.redisdb.rights import check_rights  # of the user of a server that is not ours

            await check_rights(client, config.crawl.name)
        await membership.wait_for_alike(client)
        await parts.crawl.join()
        parts.ownership.crawl_budgets.begin()
        parts.gates.open()
        if config.crawl.spider:
            await take_for_spider(client, config.crawl)
        membership.lock()
        await parts.heartbeat.send()
        await record_settings(client, config, parts.crawl.node_id)
        self._beat.leases.begin()
        await parts.control.read_if_due()
        await self._watch.refresh_budgets()
        parts.ownership.crawl_budgets.look_again()  # partitions are yet to be opened, and their counts to be published
        await self._beat.go_on_during(parts.ownership.rebalance())
        seen = await progress.survey()
        membership.remove_locks(seen.named)
        await progress.begin(seen, parts.observers.hold_end)
        await parts.progress.samples.keep(seen, membership.reports)
        await membership.record_taking(client)

    def _bytes_in_redis(self) -> int:
        config = self._parts.crawl.config
        frontier = config.frontier
        return bytes_needed(
            partitions=config.crawl.partitions,
            hot_urls=frontier.hot_urls,
            host_records=frontier.host_records,
            robots_bytes=frontier.robots_bytes,
            dns_answers=config.dns.shared_answers,
            inbox_urls=frontier.outbox_urls_max,
        )
