"""Orders to a running crawl: one Redis hash, which each node reads a few times a second."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple, Self

from bigcrawl.redisdb.keys import CRAWLS, CrawlKeys
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.scheduler.crawl.fetched_elsewhere import FINGERPRINTS
from bigcrawl.scheduler.rules.blacklist import Blacklist, in_force, parse_entries
from bigcrawl.scheduler.rules.delay_rules import DelayBook, delays_in_force, parse_delays

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.joined_crawl import Arrivals, JoinedCrawl
    from bigcrawl.scheduler.handout.handout import Handout
    from bigcrawl.scheduler.node.gates import Gates
    from bigcrawl.scheduler.owner.crawl_budgets import CrawlBudgets

logger = logging.getLogger(__name__)

SPEED = "speed"

BLACKLISTED = "blacklisted"

DELAYED = "delayed"

BUDGETED = "budgeted"

PAUSED = "paused"
"""Stops all fetching; `paused:<node>` stops one node."""

DRAINED = "drained:"
"""The beginning of an order that ends one node, whose unique id follows."""

CHECKPOINT = "checkpoint"
"""The number of the operator's last order to make the state of every partition durable."""

DISCOVERY = "discovery"
"""Whether links are queued, see `Discovery`."""

FORGOTTEN = "forgotten"
"""The number of the last order to forget URLs. After it, nodes send links again that they have sent before."""

CLOSED = "closed"
"""When the crawl was last found too slow, see `node.progress`."""

WATCHED = "watched"
"""Until when, in ms of the crawl's time, somebody watches what nodes do."""

WATCHED_HOST = "watched_host"
"""The same time, a blank, and the host whose last fetches are wanted."""

STANDSTILL = b"0/s"
READ_MS = 400  # with a round trip, every node obeys within a second


class Discovery(NamedTuple):
    """Whether links are queued; the field is `off FROM` or `on FROM UNTIL`.

    Attributes:
        off_from_ms: the start of the last period without queuing, on the crawl's clock; 0 if none.
        off_until_ms: its end; 0 while it lasts.
    """

    is_on: bool = True
    off_from_ms: int = 0
    off_until_ms: int = 0

    @classmethod
    def from_field(cls, field: bytes | None) -> Self:
        word, *times = (field or b"-").split() or [b"-"]
        numbers = [int(each) for each in times if each.isdigit()]
        if word not in (b"on", b"off") or len(numbers) != (2 if word == b"on" else 1):
            return cls()
        return cls(word == b"on", *numbers)

    def field(self) -> str:
        return f"on {self.off_from_ms} {self.off_until_ms}" if self.is_on else f"off {self.off_from_ms}"


class ControlHash:
    def __init__(self, client: RedisClient, crawl: str) -> None:
        self._client = client
        self._key = CrawlKeys(crawl).control
        self.now_ms = 0
        self.nodes = 0
        self.fields: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"<ControlHash {sorted(self.fields)}>"

    async def read(self, arrivals: Arrivals | None = None) -> None:
        """Read the orders, and in the same round trip the notices for `arrivals` and the number of nodes."""
        if arrivals is None:
            [fields] = await self._client.commands([("HGETALL", self._key)])
        else:
            with arrivals.reading() as command:
                asked = ("HGETALL", self._key), command, ("HLEN", CRAWLS)
                fields, noticed, self.nodes = await self._client.commands(asked)
                arrivals.record_read(command, noticed)
        self.fields = {name.decode("utf-8", "replace"): value for name, value in pairs_of(fields)}
        self.now_ms = self._client.now_ms()


class Control:
    """Carries out orders on one node. `is_closed`: the crawl was closed as too slow after this node joined."""

    def __init__(
        self, crawl: JoinedCrawl, handout: Handout, gates: Gates, budgets: CrawlBudgets, send_again: Callable[[], None]
    ) -> None:
        config, client, node_id = crawl.config, crawl.client, crawl.node_id
        self._blacklist = parse_entries(config.pace.blacklist)
        policy = config.politeness
        opened = " ".join(sorted(map(str, policy.allow_addresses)))
        self._opened = None if policy.allow_private_addresses else opened
        self._delays = parse_delays(config.pace.delay_rules)
        self._keys = CrawlKeys(config.crawl.name)
        self._client = client
        self._clock = crawl.clock
        self._pld_of = crawl.pld_of
        self._paces = handout.paces
        self._speed = handout.speed
        self._aside = gates.aside
        self._elsewhere = gates.elsewhere
        self._budgets = budgets
        self._hash = ControlHash(client, config.crawl.name)
        self._arrivals = crawl.arrivals
        self._blacklist_change: bytes | None = b"never"
        self._delays_change: bytes | None = b"never"
        self._budgets_change: bytes | None = b"never"
        self._forgotten: bytes | None = b"never"
        self._send_again = send_again
        self._due_ms = 0
        self._paused = {PAUSED, f"{PAUSED}:{node_id}"}
        self._drained = DRAINED + node_id
        self.is_drained = False
        self.is_closed = False
        self.discovers = True
        self.checkpoint = 0
        self._joined_ms = 0

    def __repr__(self) -> str:
        return f"<Control {self._hash!r} {self._aside.blacklist!r}>"

    async def read_if_due(self) -> bool:
        """Carry out the orders, if a read is due. Return whether the blacklist has changed."""
        return self._clock.monotonic_ms() >= self._due_ms and await self.read()

    async def read(self) -> bool:
        await self._hash.read(self._arrivals)
        self._due_ms = self._clock.monotonic_ms() + READ_MS
        self._speed.record_time(self._hash.now_ms)
        is_paused = bool(self._paused & self._hash.fields.keys())
        self._speed.adopt_plan(STANDSTILL if is_paused else self._hash.fields.get(SPEED))
        self._joined_ms = self._joined_ms or self._hash.now_ms
        self.is_closed = self.is_closed or _number_of(self._hash.fields.get(CLOSED)) > self._joined_ms
        self._record_discovery(Discovery.from_field(self._hash.fields.get(DISCOVERY)))
        self._elsewhere.adopt(self._hash.fields.get(FINGERPRINTS))
        self.checkpoint = _number_of(self._hash.fields.get(CHECKPOINT))
        self.is_drained = self.is_drained or self._drained in self._hash.fields
        if self._hash.fields.get(BUDGETED) != self._budgets_change:
            self._budgets_change = self._hash.fields.get(BUDGETED)
            self._budgets.record_change()
        if self._hash.fields.get(FORGOTTEN) != self._forgotten:
            self._forgotten = self._hash.fields.get(FORGOTTEN)
            self._send_again()
        if self._hash.fields.get(DELAYED) != self._delays_change:
            await self._read_delays()
        return self._hash.fields.get(BLACKLISTED) != self._blacklist_change and await self._read_blacklist()

    @property
    def nodes(self) -> int:
        """The number of nodes of all crawls on this Redis, when last read."""
        return self._hash.nodes

    @property
    def is_watched(self) -> bool:
        return _number_of(self._hash.fields.get(WATCHED)) > self._client.now_ms()

    @property
    def watched_host(self) -> str:
        until_ms, _, host = self._hash.fields.get(WATCHED_HOST, b"").partition(b" ")
        return host.decode("utf-8", "replace") if _number_of(until_ms) > self._client.now_ms() else ""

    @property
    def paused(self) -> frozenset[str]:
        names = (name.partition(":") for name in self._hash.fields)
        return frozenset(node for word, _, node in names if word == PAUSED)

    async def close_all(self) -> None:
        await self._client.command("HSET", self._keys.control, CLOSED, str(self._client.now_ms()))
        await self.read()

    def _record_discovery(self, discovery: Discovery) -> None:
        if discovery.is_on != self.discovers:
            logger.info("discovery is %(word)s", {"word": "on" if discovery.is_on else "off: links are not queued"})
        self.discovers = discovery.is_on

    async def _read_delays(self) -> None:
        change = self._hash.fields.get(DELAYED)
        live = dict(pairs_of(await self._client.command("HGETALL", self._keys.delays)))
        rules, faults = delays_in_force(self._delays, live)
        for fault in faults:
            logger.warning("%(fault)s; it is ignored", {"fault": fault})
        self._delays_change = change
        self._paces.set_by_hand(DelayBook(rules, self._pld_of))

    async def _read_blacklist(self) -> bool:
        """Apply the current blacklist: to held URLs now, to queued ones at the next refresh of budgets."""
        change = self._hash.fields.get(BLACKLISTED)
        live = dict(pairs_of(await self._client.command("HGETALL", self._keys.blacklist)))
        entries, faults = in_force(self._blacklist, live)
        for fault in faults:
            logger.warning("%(fault)s; it is ignored", {"fault": fault})
        self._blacklist_change = change
        now = Blacklist(entries, self._pld_of, self._opened)
        if (entries, now.mark) == (self._aside.blacklist.entries, self._aside.blacklist.mark):
            return False
        if entries != self._aside.blacklist.entries:
            logger.info("blacklist: %(count)d entries", {"count": len(entries)})
        self._budgets.record_blacklist(now)
        self._aside.apply_blacklist(now)
        return True


def _number_of(field: bytes | None) -> int:
    return int(field) if field is not None and field.isdigit() else 0
