"""URLs that cannot be fetched leave in bulk (step 10): not one by one, each through a take and an acknowledgement.

When a taken URL turns out to be forbidden, or out of reach, its host's name not to exist, or its address to be closed,
what else waits of its host in Redis is looked through, and what is so as well is ended there in one call: no place in
the node, no fetch slot, no delay. The step of the partition then admits the host's next ones from disk, and the first
of those that is taken begins it again.

A sweep pays where much is to end. After one that found less than a half to be so, the host is not swept again
for `REST_MS`: its few such URLs are ended as they are taken.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING

from bigcrawl.exceptions import OwnershipLostError, TransientStoreError
from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.records.body import is_seed, look_at_body
from bigcrawl.scheduler.records.member import unpack_member
from bigcrawl.scheduler.records.outcomes import pack_outcome, rule_hash
from bigcrawl.url.canonical import UrlError, authority_of, canonicalize

if TYPE_CHECKING:
    from bigcrawl.clock import Clock
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.gates.robots import Robots
    from bigcrawl.scheduler.owner.ownership import Ownership

logger = logging.getLogger(__name__)

LOOK_MAX = 1_000  # URLs of a host looked at, from the head of its queue; 6 us each, where its rules are few
TURN_MS = 10
REST_MS = 2_000
RESTING_MAX = 10_000
WHOLE_HOST = frozenset({"unresolved", "refused-address"})  # what ends one URL of a host ends all


class Sweeper:
    """Of a node, for the partitions it owns."""

    def __init__(self, client: RedisClient, ownership: Ownership, robots: Robots, clock: Clock) -> None:
        self._client = client
        self._ownership = ownership
        self._robots = robots
        self._clock = clock
        self._under_way: set[str] = set()
        self._resting: OrderedDict[str, int] = OrderedDict()  # host -> until, on the monotonic clock
        self.dropped = 0

    def __repr__(self) -> str:
        return f"<Sweeper under_way={len(self._under_way)} resting={len(self._resting)} dropped={self.dropped}>"

    def is_due(self, host: str) -> bool:
        """Whether a sweep of the host may pay now; no I/O."""
        return host not in self._under_way and self._resting.get(host, 0) <= self._clock.monotonic_ms()

    async def sweep(self, partition: int, host: str, reason: str = "forbidden") -> None:
        """End the host's URLs in Redis that end for the same reason; raises nothing: a later sweep mends this one.

        Args:
            partition: the host's.
            host: whose URLs.
            reason: why one of them has ended: `forbidden`, `unreachable`, or one of `WHOLE_HOST`.
        """
        self._under_way.add(host)
        try:
            looked, dropped = await self._sweep(partition, host, reason)
        except (TransientStoreError, OwnershipLostError) as error:
            logger.debug("%(host)s is not swept: %(error)s", {"host": host, "error": error})
            return
        except Exception:
            logger.exception("sweeping %(host)s failed; its URLs end as they are taken", {"host": host})
            self._rest(host)
            return
        finally:
            self._under_way.discard(host)
        self.dropped += dropped
        self._resting.pop(host, None)
        if 2 * dropped < looked or not looked:
            self._rest(host)

    def _rest(self, host: str) -> None:
        self._resting[host] = self._clock.monotonic_ms() + REST_MS
        if len(self._resting) > RESTING_MAX:
            self._resting.popitem(last=False)

    async def _sweep(self, partition: int, host: str, reason: str) -> tuple[int, int]:
        mine = self._ownership.owned.get(partition)
        if mine is None:
            return 0, 0
        members = await self._client.command("ZRANGE", mine.keys.back + host, 0, LOOK_MAX - 1)
        ended = await self._ended(members, reason)
        if not ended:
            return len(members), 0
        identity = mine.identity
        [dropped] = await self._client.run([scripts.drop_urls(mine.keys, identity, host, f"dropped:{reason}", ended)])
        for _ in range(dropped if mine.identity is identity else 0):  # else they are counted already
            mine.hot.note_ended(host)
        if dropped:
            mine.note_outcomes()
        return len(members), dropped

    async def _ended(self, members: list[bytes], reason: str) -> list[tuple[bytes, bytes]]:
        """Those that end for the reason, with their outcomes; whoever waits for the loop has a turn now and then."""
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
        """The outcome of a URL that ends for the reason; empty for one that does not, or must be taken for it."""
        try:
            fields = unpack_member(member)
            url, is_canonical, has_errback = look_at_body(fields.body)
            if has_errback or (reason == "refused-address" and is_seed(fields.body)):
                return b""  # an errback runs in the engine, a seed waits for another setting
            if reason in WHOLE_HOST:
                return pack_outcome(fields.key, f"dropped:{reason}")
            known = self._robots.known(authority_of(url if is_canonical else canonicalize(url)))
        except (ValueError, TypeError, UrlError):
            return b""  # taken, it ends as undecodable
        if known is None or (known.reason == "unreachable") is not (reason == "unreachable"):
            return b""
        if reason == "unreachable":
            return pack_outcome(fields.key, "dropped:unreachable")
        line = known.rules.forbidding_line(url)
        return pack_outcome(fields.key, "dropped:forbidden", rule_hash(line)) if line else b""
