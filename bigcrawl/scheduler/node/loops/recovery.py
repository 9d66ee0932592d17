"""A Redis that was restarted may have forgotten its last second: it and this node are brought in line."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.redisdb.client import RedisRestartedError

if TYPE_CHECKING:
    from bigcrawl.scheduler.node.assembly import Parts
    from bigcrawl.scheduler.node.loops.beat import Beat

logger = logging.getLogger(__name__)


class Recovery:
    """Done before anything else is sent; begun anew where it was cut off."""

    def __init__(self, parts: Parts, beat: Beat) -> None:
        self._client = parts.client
        self._crawl = parts.crawl
        self._folding = parts.folding
        self._troubles = parts.troubles
        self._ownership = parts.ownership
        self._outbox = parts.outbox
        self._exchange = parts.exchange
        self._trials = parts.trials
        self._reputation = parts.reputation
        self._shared_hosts = parts.shared_hosts
        self._starts = parts.starts
        self._beat = beat

    async def run(self) -> None:
        """Claim again what is owned, and tell again what Redis may have forgotten.

        Raises:
            ConfigError: Redis holds this crawl no more.
            TransientStoreError: Redis is away again; all of this is to be done anew.
        """
        async with self._folding:
            await self._client.accept_restart()
            try:
                await self._crawl.check()
                await self._beat.go_on_during(self._ownership.reclaim_all())
                await self._tell_again()
            except RedisRestartedError:
                raise
            except TransientStoreError:
                self._client.take_back_acceptance()
                raise
            self._troubles.note_recovery()
        logger.info("Redis was restarted; partitions were claimed again and brought in line")

    async def _tell_again(self) -> None:
        self._outbox.tell_again()
        self._exchange.tell_again()
        self._trials.tell_again()
        self._reputation.publish_again()
        self._shared_hosts.note_restart()
        await self._starts.end_again()
