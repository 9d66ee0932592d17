"""Takes URLs out of the queues in Redis: back to disk, or to their end.

A taken URL goes back to disk, through its inbox, if the blacklist covers it or the spider cannot run it.

When a taken URL is forbidden, out of reach, without an address or at a closed one, the host's other URLs in Redis that
share the reason are ended in one call. The next step admits more, and the first one taken starts the next sweep.

The URL of a page fetched before stays in its queue: once taken, it may get a next visit when it ends, but not in a
sweep. After a sweep that ended fewer than half of the URLs, the host is not swept for `REST_MS`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING

from bigcrawl.exceptions import OwnershipLostError, TransientStoreError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.replies import sort_replies
from bigcrawl.scheduler.records.body import is_seed, known_in, look_at_body
from bigcrawl.scheduler.records.held import HeldUrl, Stage
from bigcrawl.scheduler.records.member import order_of, unpack_member
from bigcrawl.scheduler.records.outcomes import pack_outcome, rule_hash
from bigcrawl.scheduler.records.queued_url import UNCHECKED, UNRUNNABLE, QueuedUrl, encode_batch
from bigcrawl.scheduler.rules.blacklist import NOTHING, Blacklist
from bigcrawl.url.canonical import UrlError, authority_of, canonicalize

if TYPE_CHECKING:
    from bigcrawl.clock import Clock
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.gates.robots import RobotsGate
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.ownership import Ownership
    from bigcrawl.scheduler.records.held_urls import HeldUrls

logger = logging.getLogger(__name__)

REASONS_SAID_MAX = 32

LOOK_MAX = 1_000  # from the head of the host's queue; 6 us each if there are few rules
TURN_MS = 10
REST_MS = 2_000
RESTING_MAX = 10_000
WHOLE_HOST = frozenset({"unresolved", "refused-address"})


class Aside:
    def __init__(self, client: RedisClient, held: HeldUrls, ownership: Ownership, connections: int) -> None:
        self._client = client
        self._held = held
        self._ownership = ownership
        self._connections = connections
        self._waiting: list[tuple[HeldUrl, QueuedUrl]] = []
        self._said: set[str] = set()
        self.blacklist: Blacklist = NOTHING

    def __repr__(self) -> str:
        return f"<Aside {self.blacklist!r} waiting={len(self._waiting)}>"

    def covers(self, held: HeldUrl) -> bool:
        """Return whether the blacklist covers a held URL: its host, the URL itself, or its known address."""
        blacklist = self.blacklist
        if held.address and blacklist.of_address(held.address):
            return True
        return blacklist.of_url(held.host, held.fields.body) is not None

    def refuses_address(self, address: str) -> bool:
        return self.blacklist.of_address(address) is not None

    def set_aside(self, held: HeldUrl) -> None:
        if held.stage in (Stage.STARTED, Stage.ENDED):
            return
        held.go_to(Stage.ENDED)
        fields = held.fields
        by_address = self.blacklist.of_url(held.host, fields.body) is None
        flags = self.blacklist.mark_flags(fields.flags, by_address=by_address) | UNCHECKED
        self._waiting.append((held, QueuedUrl(fields.key, held.host, fields.priority, flags, fields.body)))

    def put_unrunnable(self, held: HeldUrl, why: str) -> None:
        """Set a URL aside until a spider can run it. No request to its host may have been sent."""
        held.go_to(Stage.ENDED)
        fields = held.fields
        flags = self.blacklist.mark_flags(fields.flags, by_address=False) | UNCHECKED | UNRUNNABLE
        body = fields.body or held.member
        self._waiting.append((held, QueuedUrl(fields.key, held.host, fields.priority, flags, body)))
        if why not in self._said and len(self._said) < REASONS_SAID_MAX:
            self._said.add(why)
            logger.error(
                "%(url)s waits on disk: %(why)s (logged once; later ones are counted as unrunnable)",
                {"url": held.url or f"a URL of {held.host}", "why": why},
            )

    def apply_blacklist(self, blacklist: Blacklist) -> None:
        """Apply this blacklist from now on, and set aside the held URLs that it covers."""
        self.blacklist = blacklist
        for held in self._held if len(self.blacklist) else ():
            if held.stage in (Stage.WAITING, Stage.BUFFERED) and not held.refusal and self.covers(held):
                self.set_aside(held)

    async def flush(self) -> bool:
        """Move the URLs set aside out of the queues in Redis. Return whether there were any."""
        if not self._waiting:
            return False
        by_partition: dict[OwnedPartition, list[tuple[HeldUrl, QueuedUrl]]] = {}
        for row in self._waiting:
            owned = self._ownership.owned.get(row[0].partition)
            if owned is not None and self._held.drop(row[0]):
                by_partition.setdefault(owned, []).append(row)
        self._waiting = []
        calls = [self._call(owned, rows) for owned, rows in by_partition.items()]
        replies = sort_replies(by_partition, await self._client.run_each(calls))
        for owned in replies.lost:
            self._ownership.table.remove_lost(owned)
        for owned, entries in replies.done:
            _record_moved(owned, [held for held, _ in by_partition[owned]], entries, self._client.running_ms)
        if replies.failed is not None:
            raise TransientStoreError(f"blacklisted URLs could not be moved to disk: {replies.failed}")
        return True

    def _call(self, owned: OwnedPartition, rows: list[tuple[HeldUrl, QueuedUrl]]) -> scripts.Call[list[str]]:
        urls = [(held.seq, encode_batch([url])) for held, url in rows]
        return scripts.set_aside_urls(owned.keys, owned.identity, self._connections, urls)


def _record_moved(owned: OwnedPartition, moved: list[HeldUrl], entries: list[str], running_ms: int) -> None:
    owned.inbox.record_urls()
    owned.record_due_by(min(held.due_ms for held in moved))
    for held, entry_id in zip(moved, entries, strict=True):
        owned.hot.record_ended(held.host)
        if entry_id:
            owned.moved.record_move(entry_id, held.host, [order_of(held.fields.priority, held.seq)], running_ms)


class Sweeper:
    def __init__(self, client: RedisClient, ownership: Ownership, robots: RobotsGate, clock: Clock) -> None:
        self._client = client
        self._ownership = ownership
        self._robots = robots
        self._clock = clock
        self._under_way: set[str] = set()
        self._resting: OrderedDict[str, int] = OrderedDict()
        self.dropped = 0
        self.forbidden = 0

    def __repr__(self) -> str:
        return f"<Sweeper under_way={len(self._under_way)} resting={len(self._resting)} dropped={self.dropped}>"

    def is_due(self, host: str) -> bool:
        return host not in self._under_way and self._resting.get(host, 0) <= self._clock.monotonic_ms()

    async def sweep(self, partition: int, host: str, reason: str = "forbidden") -> None:
        """End the host's URLs in Redis that share the reason: `forbidden`, `unreachable` or one of `WHOLE_HOST`."""
        self._under_way.add(host)
        try:
            looked, dropped = await self._sweep(partition, host, reason)
        except (TransientStoreError, OwnershipLostError) as error:
            logger.debug(
                "the forbidden URLs of %(host)s were not dropped in bulk: %(error)s", {"host": host, "error": error}
            )
            return
        except Exception:
            logger.exception(
                "dropping the forbidden URLs of %(host)s in bulk failed; they are dropped one by one", {"host": host}
            )
            self._rest(host)
            return
        finally:
            self._under_way.discard(host)
        self.dropped += dropped
        self.forbidden += dropped * (reason == "forbidden")
        self._resting.pop(host, None)
        if 2 * dropped < looked or not looked:
            self._rest(host)

    def _rest(self, host: str) -> None:
        self._resting[host] = self._clock.monotonic_ms() + REST_MS
        if len(self._resting) > RESTING_MAX:
            self._resting.popitem(last=False)

    async def _sweep(self, partition: int, host: str, reason: str) -> tuple[int, int]:
        owned = self._ownership.owned.get(partition)
        if owned is None:
            return 0, 0
        members = await self._client.command("ZRANGE", owned.keys.back + host, 0, LOOK_MAX - 1)
        ended = await self._ended(members, reason)
        if not ended:
            return len(members), 0
        identity = owned.identity
        [dropped] = await self._client.run([scripts.drop_urls(owned.keys, identity, host, f"dropped:{reason}", ended)])
        for _ in range(dropped if owned.identity is identity else 0):  # otherwise they are counted already
            owned.hot.record_ended(host)
        if dropped:
            owned.inbox.record_others()
        return len(members), dropped

    async def _ended(self, members: list[bytes], reason: str) -> list[tuple[bytes, bytes]]:
        ended = []
        turn_ends_ms = self._clock.monotonic_ms() + TURN_MS
        for member in members:
            if outcome := self._outcome(member, reason):
                ended.append((member, outcome))
            if self._clock.monotonic_ms() >= turn_ends_ms:
                await asyncio.sleep(0)
                turn_ends_ms = self._clock.monotonic_ms() + TURN_MS
        return ended

    def _outcome(self, member: bytes, reason: str) -> bytes:
        """Return the outcome of a URL to which the reason applies; empty for others, and if it must be taken first."""
        try:
            fields = unpack_member(member)
            url, is_canonical, has_errback, _ = look_at_body(fields.body)
            if has_errback or (reason == "refused-address" and is_seed(fields.body)):
                return b""  # an errback runs in the engine, and a seed waits for other settings
            if known_in(fields.body):
                return b""  # once taken, it may come again
            if reason in WHOLE_HOST:
                return pack_outcome(fields.key, f"dropped:{reason}")
            known = self._robots.known_rules(authority_of(url if is_canonical else canonicalize(url)))
        except (ValueError, TypeError, UrlError):
            return b""  # once taken, it is set aside
        if known is None or (known.reason == "unreachable") is not (reason == "unreachable"):
            return b""
        if reason == "unreachable":
            return pack_outcome(fields.key, "dropped:unreachable")
        line = known.rules.forbidding_line(url)
        return pack_outcome(fields.key, "dropped:forbidden", rule_hash(line)) if line else b""
