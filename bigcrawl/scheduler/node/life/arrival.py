"""How a node joins its crawl: record, lock, heartbeat, first claims."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from bigcrawl.redisdb.rights import check_rights
from bigcrawl.redisdb.server_needs import bytes_needed, look_at_needs
from bigcrawl.scheduler.crawl.crawls_spider import take_for_spider

if TYPE_CHECKING:
    from bigcrawl.scheduler.node.assembly import Parts
    from bigcrawl.scheduler.node.loops.beat import Beat
    from bigcrawl.scheduler.node.loops.watch import Watch

logger = logging.getLogger(__name__)


class Arrival:
    """Joins the crawl, before the loops run."""

    def __init__(self, parts: Parts, beat: Beat, watch: Watch) -> None:
        """`beat` sends signs of life while partitions are opened, and `watch` makes the first budgets."""
        self._parts = parts
        self._beat = beat
        self._watch = watch

    def __repr__(self) -> str:
        return f"<Arrival of {self._parts.node_id}>"

    async def join(self) -> None:
        """Check that the crawl can be joined, join it, and claim the first partitions.

        Raises:
            ConfigError, CorruptionError: says what is wrong, and the remedy.
            TransientStoreError: Redis is away.
        """
        parts = self._parts
        config, membership, progress = parts.config, parts.membership, parts.progress
        await parts.client.ping()
        for fault in await look_at_needs(parts.client, self._bytes_in_redis()):
            logger.warning("%(fault)s", {"fault": fault})
        await check_rights(parts.client, config.crawl.name)
        await membership.wait_for_alike(parts.client)
        await parts.crawl.join()
        parts.reputation.begin()
        if config.dns.shared_answers:
            parts.dns.use_store(parts.answers)
        if config.crawl.spider:
            await take_for_spider(parts.client, config.crawl.name, config.crawl.spider)
        membership.lock()
        await parts.heartbeat.send()
        parts.leases.begin()
        await parts.control.read_if_due()
        await self._watch.refresh_budgets()
        parts.reputation.look_again()  # partitions are yet to be opened, and their counts to be published
        await self._beat.go_on_during(parts.ownership.rebalance())
        seen = await progress.survey()
        membership.remove_locks(seen.named)
        await progress.begin(seen)
        await parts.samples.keep(seen, membership.reports)
        await membership.note_taking(parts.client)

    def _bytes_in_redis(self) -> int:
        config = self._parts.config
        frontier = config.frontier
        return bytes_needed(
            partitions=config.crawl.partitions,
            hot_urls=frontier.hot_urls,
            host_records=frontier.host_records,
            robots_bytes=frontier.robots_bytes,
            dns_answers=config.dns.shared_answers,
            inbox_urls=frontier.outbox_urls_max,
        )
