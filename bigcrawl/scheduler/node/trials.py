"""Records suspects (`handout.suspects`) in Redis: a trial before its fetch, so that the next node knows of it."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.records.held import HeldUrl, Stage

if TYPE_CHECKING:
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.handout.handout import Handout
    from bigcrawl.scheduler.owner.ownership import Ownership

logger = logging.getLogger(__name__)

PATIENCE_MS = 30_000  # how long suspects may keep a node from fetching others; per death for one in process
REST_MS = 60_000
BURIED_KEPT = 16
LETTERS_MAX = 1_000  # each has cost several deaths


class Trials:
    def __init__(self, client: RedisClient, ownership: Ownership, handout: Handout) -> None:
        self._client = client
        self._ownership = ownership
        self._handout = handout
        self._suspects = handout.suspects
        self._buried: deque[tuple[int, int, int, bytes]] = deque(maxlen=BURIED_KEPT)

    def __repr__(self) -> str:
        return f"<Trials of {self._suspects!r}>"

    @property
    def have_changes(self) -> bool:
        return self._suspects.has_changes

    async def flush(self) -> None:
        await self._bury()
        await self._clear()
        held = self._suspects.next_alone()
        if held is not None:
            await self._announce(held)
        for held in self._suspects.overdue(PATIENCE_MS):
            self._handout.give_back(held, REST_MS)
        for held in self._suspects.in_flight_too_long(PATIENCE_MS):
            await self._resume_others(held)

    async def send_again(self) -> None:
        """Send the dead letters again that a restarted Redis may have forgotten."""
        known_ms = self._client.running_ms
        for at_ms, partition, key, letter in self._buried:
            if at_ms >= known_ms:
                await self._send(partition, key, letter)

    async def _announce(self, held: HeldUrl) -> None:
        owned = self._ownership.owned.get(held.partition)
        if owned is None:
            return
        assert held.suspicion is not None, "a suspect has a suspicion"
        [is_taken] = await self._client.run([scripts.try_suspect(owned.keys, owned.identity, held.seq)])
        if is_taken:
            logger.warning(
                "%(url)s was in flight when a node died, %(deaths)d times so far; its next fetch runs alone",
                {"url": held.url, "deaths": held.suspicion.deaths},
            )
            self._suspects.record_announced(held)
        else:
            self._handout.give_back(held, 0)

    async def _clear(self) -> None:
        cleared = list(self._suspects.cleared)
        if cleared:
            rows = [(self._ownership.owned.get(held.partition), held) for held in cleared]
            await self._client.commands([("HDEL", owned.keys.deaths, held.seq) for owned, held in rows if owned])
            for owned, held in rows:
                if owned is not None:
                    owned.clear_suspect(held.seq)
            self._suspects.forget_cleared(len(cleared))

    async def _resume_others(self, held: HeldUrl) -> None:
        owned = self._ownership.owned.get(held.partition)
        if owned is not None and self._suspects.is_lone(held):
            await self._client.run([scripts.try_suspect(owned.keys, owned.identity, held.seq, alone=False)])
        self._suspects.resume_others(held)

    async def _bury(self) -> None:
        """Make dead letters of URLs proven to kill: record the letter first, then end the URL."""
        for held in list(self._suspects.proven):
            if held.stage is not Stage.ENDED and held.partition in self._ownership.owned:
                from bigcrawl.scheduler.records.dead_letters import DeadLetter, pack_letter

                assert held.suspicion is not None, "a suspect has a suspicion"
                letter = pack_letter(DeadLetter.of(held, held.suspicion.deaths, self._client.now_ms()))
                await self._send(held.partition, held.fields.key, letter)
                self._buried.append((self._client.running_ms, held.partition, held.fields.key, letter))
                logger.error(
                    "%(url)s is a dead letter: it was in flight when a node died, %(deaths)d times, the last time "
                    "alone; see `scrapy frontier dead`",
                    {"url": held.url, "deaths": held.suspicion.deaths},
                )
                self._handout.ends.drop_url(held, "poison")
            self._suspects.forget_proven(held)

    async def _send(self, partition: int, key: int, letter: bytes) -> None:
        owned = self._ownership.owned.get(partition)
        if owned is not None:
            call = scripts.bury_url(owned.keys, owned.identity, key, letter, LETTERS_MAX)
            await self._client.run([call])
