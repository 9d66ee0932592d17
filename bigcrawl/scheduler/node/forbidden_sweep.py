"""Ends, in bulk, queued URLs that cannot be fetched.

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
from bigcrawl.scheduler.records.body import is_seed, known_in, look_at_body
from bigcrawl.scheduler.records.member import unpack_member
from bigcrawl.scheduler.records.outcomes import pack_outcome, rule_hash
from bigcrawl.url.canonical import UrlError, authority_of, canonicalize

if TYPE_CHECKING:
    from bigcrawl.clock import Clock
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.gates.robots import RobotsGate
    from bigcrawl.scheduler.owner.ownership import Ownership

logger = logging.getLogger(__name__)

LOOK_MAX = 1_000  # from the head of the host's queue; 6 us each if there are few rules
TURN_MS = 10
REST_MS = 2_000
RESTING_MAX = 10_000
WHOLE_HOST = frozenset({"unresolved", "refused-address"})


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
        """Return the outcome of a URL that shares the reason; empty if it does not, or must be taken first."""
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
