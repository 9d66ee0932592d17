"""Reconciles this node with a restarted Redis, which may have lost its last second."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.redisdb.reply_errors import RedisRestartedError
from bigcrawl.scheduler.handout.recent import REDIS_AWAY
from bigcrawl.scheduler.node.loops.loop import refusal_of

if TYPE_CHECKING:
    from bigcrawl.scheduler.node.assembly import Parts
    from bigcrawl.scheduler.node.loops.beat import Beat

logger = logging.getLogger(__name__)


class Recovery:
    def __init__(self, parts: Parts, beat: Beat) -> None:
        self._client = parts.crawl.client
        self._crawl = parts.crawl
        self._folding = parts.ownership.lock
        self._troubles = parts.troubles
        self._ownership = parts.ownership
        self._outbox = parts.outbox
        self._observers = parts.observers
        self._trials = parts.trials
        self._reputation = parts.ownership.crawl_budgets
        self._shared_hosts = parts.gates.shared_hosts
        self._starts = parts.starts
        self._recent = parts.exchange.recent
        self._beat = beat

    async def run(self) -> None:
        """Claim all owned partitions again, and send what Redis may have forgotten. Raises ConfigError."""
        async with self._folding:
            await self._client.accept_restart()
            try:
                await self._crawl.check()
                await self._beat.keep_leases_during(self._ownership.reclaim_all(self._send_again))
                self._reputation.publish_again()
                self._shared_hosts.record_restart()
                await self._starts.end_again()
            except RedisRestartedError:
                raise
            except TransientStoreError:
                self._client.undo_acceptance()
                raise
            self._client.record_recovery()
            self._troubles.record_recovery()
        self._recent.record_event(REDIS_AWAY, "met a Redis that was restarted")
        logger.info("Redis was restarted; partitions were claimed again and reconciled with it")

    async def _send_again(self) -> None:
        """Send links and dead letters. A full Redis gets links later, after ends and steps have made room."""
        self._outbox.send_again()
        self._observers.send_again()
        await refusal_of(self._outbox.flush(self._client))
        await self._trials.send_again()
