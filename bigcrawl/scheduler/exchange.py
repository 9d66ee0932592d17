"""Ending and taking in one round trip: what is safe is acknowledged, what is due is taken (steps 9, 12, 14)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from bigcrawl.exceptions import BigcrawlError, OwnershipLostError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.scripts import Taken
from bigcrawl.scheduler.codec import Member, look_at_body, unpack_member
from bigcrawl.scheduler.held import HeldUrl
from bigcrawl.url.canonical import authority_of, canonicalize

if TYPE_CHECKING:
    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.scripts import Ended, TakenUrl
    from bigcrawl.scheduler.gatekeeper import Gatekeeper
    from bigcrawl.scheduler.handout import Handout
    from bigcrawl.scheduler.outbox import Outbox
    from bigcrawl.scheduler.owned_partition import OwnedPartition
    from bigcrawl.scheduler.ownership import Ownership

logger = logging.getLogger(__name__)

HORIZON_MS = 500  # URLs are taken this long before they are due, and paced in the node
TAKE_MAX = 64
URL_BYTES_MAX = 1 << 17  # nothing longer was let in: BIGCRAWL_URL_BYTES_MAX is 64 KiB at most


class Exchange:
    """The node's side of `end_urls` and `take_urls`."""

    def __init__(
        self,
        config: Config,
        client: RedisClient,
        clock: Clock,
        ownership: Ownership,
        handout: Handout,
        outbox: Outbox,
        gatekeeper: Gatekeeper,
    ) -> None:
        self._policy = config.politeness
        self._client = client
        self._clock = clock
        self._ownership = ownership
        self._handout = handout
        self._outbox = outbox
        self._gatekeeper = gatekeeper
        self.pages = 0  # acknowledged by this node
        self.is_taking = False  # a take was sent and its reply has not come: Redis may hold URLs as ours

    def __repr__(self) -> str:
        return f"<Exchange pages={self.pages} is_taking={self.is_taking}>"

    async def run(self, *, acknowledge: bool, urls_max: int) -> bool:
        """Tell Redis of ended URLs and take new ones, in one round trip; True when anything moved.

        Args:
            acknowledge: whether pages are safe, so that ended URLs may be acknowledged.
            urls_max: how many may be taken, over all partitions; 0 for none.

        Raises:
            TransientStoreError: Redis is away; what it did not hear is told again.
        """
        ends = self._ends() if acknowledge else {}
        takes = self._takes(urls_max) if urls_max > 0 else []
        calls: list[scripts.Call[Any]] = [self._end_call(mine, rows) for mine, rows in ends.items()]
        calls += [call for _, _, call in takes]
        if not calls:
            return False
        self.is_taking = bool(takes)
        results = await self._client.run_each(calls)
        self.is_taking = False
        now_ms = self._clock.monotonic_ms()
        failed: BigcrawlError | None = None
        for (mine, rows), result in zip(ends.items(), results[: len(ends)], strict=True):
            failed = self._after_end(mine, rows, result, now_ms) or failed
        for (mine, share, _), result in zip(takes, results[len(ends) :], strict=True):
            failed = self._after_take(mine, share, result, now_ms) or failed
        if failed is not None:
            raise failed
        return True

    def _ends(self) -> dict[OwnedPartition, list[tuple[HeldUrl, Ended]]]:
        """Ended URLs that may be acknowledged, by partition."""
        by_partition: dict[OwnedPartition, list[tuple[HeldUrl, Ended]]] = {}
        for held, end in self._handout.held.acknowledgeable(self._outbox.flushed):
            mine = self._ownership.owned.get(held.partition)
            if mine is not None:
                by_partition.setdefault(mine, []).append((held, end))
        return by_partition

    def _end_call(self, mine: OwnedPartition, rows: list[tuple[HeldUrl, Ended]]) -> scripts.Call[int]:
        now_ms = self._clock.monotonic_ms()
        ends = [_since_its_end(held, end, now_ms) for held, end in rows]
        return scripts.end_urls(mine.keys, mine.who, self._policy.host_connections, ends)

    def _after_end(
        self, mine: OwnedPartition, rows: list[tuple[HeldUrl, Ended]], result: Any, now_ms: int
    ) -> BigcrawlError | None:
        if isinstance(result, OwnershipLostError):
            self._ownership.lose(mine)
            return None
        if isinstance(result, BigcrawlError):
            return result
        for held, end in rows:
            if not end.member:
                mine.note_ended(held.host)
                self.pages += end.counter.startswith("status:")
            due_ms = now_ms + end.delay_ms
            mine.due_ms = due_ms if mine.due_ms is None else min(mine.due_ms, due_ms)
        self._handout.held.forget([held for held, _ in rows], now_ms)
        return None

    def _takes(self, room: int) -> list[tuple[OwnedPartition, int, scripts.Call[Taken]]]:
        """The calls that take what is due, and how many URLs of whom; together no more than there is room for."""
        now_ms = self._clock.monotonic_ms()
        due = [
            mine
            for mine in self._ownership.owned.values()
            if mine.due_ms is not None and mine.due_ms <= now_ms + HORIZON_MS and not mine.draining
        ]
        due.sort(key=lambda mine: mine.due_ms or 0)
        takes = []
        for mine in due:
            # As many as it gave last time, and a little more: few calls, each with several URLs.
            share = min(room, mine.take_share)
            if share <= 0:
                break
            room -= share
            takes.append((mine, share, self._take_call(mine, share)))
        return takes

    def _take_call(self, mine: OwnedPartition, urls_max: int) -> scripts.Call[Taken]:
        connections, delay_ms = self._policy.host_connections, self._policy.host_delay_ms
        return scripts.take_urls(mine.keys, mine.who, urls_max, HORIZON_MS, connections, delay_ms)

    def _after_take(self, mine: OwnedPartition, share: int, result: Any, now_ms: int) -> BigcrawlError | None:
        if isinstance(result, OwnershipLostError):
            self._ownership.lose(mine)
            return None
        if not isinstance(result, Taken):
            assert isinstance(result, BigcrawlError)
            return result
        if self._ownership.owned.get(mine.keys.partition) is not mine:
            return None  # lost while the reply was under way; its new owner has them
        mine.take_share = min(TAKE_MAX, 2 * share if len(result.urls) == share else len(result.urls) + 1)
        has_next = result.next_due_ms >= 0
        mine.due_ms = now_ms + max(0, result.next_due_ms - result.now_ms) if has_next else None
        for url in result.urls:
            # A millisecond more: the clock here was cut off to one, and may be that much further.
            wait_ms = url.due_ms - result.now_ms
            held = _held(mine.keys.partition, url, now_ms + (wait_ms + 1 if wait_ms > 0 else 0))
            self._handout.held.add(held)
            if held.url:
                self._gatekeeper.offer(held)
            else:
                self._handout.give_up(held, "undecodable")
        return None


def _since_its_end(held: HeldUrl, end: Ended, now_ms: int) -> Ended:
    """The end with what is left of its host's delay: it began when the fetch was over, not with the word of it.

    Rounded up: two clocks cut off up to a millisecond each.
    """
    waited_ms = now_ms - held.ended_ms - 2
    if not held.ended_ms or not end.delay_ms or waited_ms <= 0:
        return end
    return end._replace(delay_ms=max(0, end.delay_ms - waited_ms))


def _held(partition: int, url: TakenUrl, due_ms: int) -> HeldUrl:
    """A taken URL as the node holds it; without `url` when it cannot be read, which must stop nobody."""
    try:
        fields = unpack_member(url.member)
        text, is_canonical, has_errback = look_at_body(fields.body)
        authority = authority_of(text if is_canonical else canonicalize(text, URL_BYTES_MAX))
    except Exception:
        logger.exception("a URL of %(host)s in Redis cannot be read and is dropped", {"host": url.host})
        seq = int(url.member.partition(b":")[0])
        fields, text, has_errback, authority = Member(seq, 0, 0, 0, 0, b""), "", False, ""
    return HeldUrl(
        partition=partition,
        host=url.host,
        due_ms=due_ms,
        due_server_ms=url.due_ms,
        member=url.member,
        fields=fields,
        url=text,
        authority=authority,
        has_errback=has_errback,
    )
