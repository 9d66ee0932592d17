"""What is said to a crawl while it runs, and how each node hears of it: one Redis hash, read a few times a second."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.scheduler.rules.blacklist import Blacklist, in_force, parse_entries
from bigcrawl.scheduler.rules.delay_rules import DelayBook, delays_in_force, parse_delays

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.gates.delays import Paces
    from bigcrawl.scheduler.gates.speed import SpeedControl
    from bigcrawl.scheduler.node.set_aside import Aside

logger = logging.getLogger(__name__)

SPEED = "speed"
"""The field that has the text of a speed, see `bigcrawl.politeness.speed_plan`."""

BLACKLISTED = "blacklisted"
"""The field that has the number of the blacklist's last change."""

DELAYED = "delayed"
"""The field that has the number of the last change of delays set by hand."""

HEAR_MS = 400  # between two readings: with a round trip, every node has heard within a second


class Said:
    """The fields of the hash, and the time of the crawls, as they were read last."""

    def __init__(self, client: RedisClient, crawl: str) -> None:
        self._client = client
        self._key = CrawlKeys(crawl).control
        self.now_ms = 0
        self.fields: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"<Said {sorted(self.fields)}>"

    async def read(self) -> None:
        """Read them.

        Raises:
            TransientStoreError: Redis is away; they stay as they are.
        """
        fields = await self._client.command("HGETALL", self._key)
        self.fields = {name.decode("utf-8", "replace"): value for name, value in pairs_of(fields)}
        self.now_ms = self._client.now_ms()


class Control:
    """One node that hears, and does as it was told.

    Args:
        pld_of: a host's PLD, known once the node has joined.
        note_blacklist: told of each new blacklist, for the partitions' queues.
    """

    def __init__(
        self,
        config: Config,
        client: RedisClient,
        clock: Clock,
        speed: SpeedControl,
        aside: Aside,
        pld_of: Callable[[str], str],
        note_blacklist: Callable[[Blacklist], None],
        paces: Paces,
    ) -> None:
        """Check the settings' blacklist and delays.

        Raises:
            ConfigError: an entry that is none.
        """
        self._blacklist = parse_entries(config.pace.blacklist)
        policy = config.politeness
        opened = " ".join(sorted(map(str, policy.allow_addresses)))
        self._opened = None if policy.allow_private_addresses else opened
        self._delays = parse_delays(config.pace.delay_rules)
        self._keys = CrawlKeys(config.crawl.name)
        self._paces = paces
        self._client = client
        self._clock = clock
        self._speed = speed
        self._aside = aside
        self._pld_of = pld_of
        self._note_blacklist = note_blacklist
        self._said = Said(client, config.crawl.name)
        self._heard_blacklist: bytes | None = b"never"
        self._heard_delays: bytes | None = b"never"
        self._due_ms = 0

    def __repr__(self) -> str:
        return f"<Control {self._said!r} {self._aside.blacklist!r}>"

    async def hear_due(self) -> bool:
        """Hear, if it is time to; whether the blacklist is another one now.

        Raises:
            TransientStoreError: Redis is away; all stays as it is.
        """
        return self._clock.monotonic_ms() >= self._due_ms and await self.hear()

    async def hear(self) -> bool:
        """Hear now; returns and raises as `hear_due`."""
        await self._said.read()
        self._due_ms = self._clock.monotonic_ms() + HEAR_MS
        self._speed.note_time(self._said.now_ms)
        self._speed.note_said(self._said.fields.get(SPEED))
        if self._said.fields.get(DELAYED) != self._heard_delays:
            await self._read_delays()
        return self._said.fields.get(BLACKLISTED) != self._heard_blacklist and await self._read_blacklist()

    async def _read_delays(self) -> None:
        """Go by the delays as they are now; a host that rests already goes on as it was told."""
        heard = self._said.fields.get(DELAYED)
        live = dict(pairs_of(await self._client.command("HGETALL", self._keys.delays)))
        rules, faults = delays_in_force(self._delays, live)
        for fault in faults:
            logger.warning("%(fault)s; it is left out", {"fault": fault})
        self._heard_delays = heard
        self._paces.set_by_hand(DelayBook(rules, self._pld_of))

    async def _read_blacklist(self) -> bool:
        """Go by the blacklist as it is now: at once with what is held, and with the queues at the next look."""
        heard = self._said.fields.get(BLACKLISTED)
        live = dict(pairs_of(await self._client.command("HGETALL", self._keys.blacklist)))
        entries, faults = in_force(self._blacklist, live)
        for fault in faults:
            logger.warning("%(fault)s; it is left out", {"fault": fault})
        self._heard_blacklist = heard
        now = Blacklist(entries, self._pld_of, self._opened)
        if (entries, now.mark) == (self._aside.blacklist.entries, self._aside.blacklist.mark):
            return False
        if entries != self._aside.blacklist.entries:
            logger.info("blacklist: %(count)d entries", {"count": len(entries)})
        self._note_blacklist(now)
        self._aside.obey(now)
        return True
