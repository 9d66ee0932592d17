"""Ending and taking in one round trip: what is safe is acknowledged, what is due is taken (steps 9, 12, 14)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.replies import sort_replies
from bigcrawl.redisdb.scripts import Ended
from bigcrawl.scheduler.owner.due_heap import NEVER_MS
from bigcrawl.scheduler.records.body import look_at_body
from bigcrawl.scheduler.records.held import HeldUrl
from bigcrawl.scheduler.records.member import Member, seq_of, unpack_member
from bigcrawl.scheduler.records.outcomes import pack_fetched, pack_outcome
from bigcrawl.url.canonical import authority_of, canonicalize

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.scripts import Exchanged, TakenUrl
    from bigcrawl.scheduler.gates.gatekeeper import Gatekeeper
    from bigcrawl.scheduler.handout.handout import Handout
    from bigcrawl.scheduler.node.outbox import Outbox
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.ownership import Ownership

logger = logging.getLogger(__name__)

HORIZON_MS = 500  # URLs are taken this long before they are due, and paced in the node
TOGETHER_MS = 500  # a partition that is told of an end is asked for a URL so much sooner: both are one call
_new_tuple = tuple.__new__  # the class's own constructor is Python
URL_BYTES_MAX = 1 << 17  # nothing longer was let in: BIGCRAWL_URL_BYTES_MAX is 64 KiB at most


class Exchange:
    """The node's side of `exchange_urls`."""

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
        self.bytes_account: Callable[[str, str], int | None] = _no_account
        self._told_again: dict[int, bytes] = {}  # outcomes by partition that a restarted Redis may have forgotten
        self.pages = 0  # acknowledged by this node

    def __repr__(self) -> str:
        return f"<Exchange pages={self.pages}>"

    async def run(self, *, acknowledge: bool, urls_max: int) -> bool:
        """Tell Redis of ended URLs and take new ones, in one round trip; True when anything moved.

        Args:
            acknowledge: whether pages are safe, so that ended URLs may be acknowledged.
            urls_max: how many may be taken, over all partitions; 0 for none.

        Raises:
            TransientStoreError: Redis is away; what it did not hear is told again.
        """
        now_ms = self._clock.monotonic_ms()
        ends = self._ends(now_ms) if acknowledge else {}
        shares = self._shares(urls_max, now_ms) if urls_max > 0 else {}
        partitions = [*ends, *(mine for mine in shares if mine not in ends)]
        if self._told_again:
            owned = self._ownership.owned
            partitions += [owned[p] for p in self._told_again if p in owned and owned[p] not in partitions]
        if not partitions:
            return False
        calls = [self._call(mine, ends.get(mine, ()), shares.get(mine, 0), now_ms) for mine in partitions]
        for mine in partitions:
            mine.note_asked()
        try:
            results = await self._client.run_each(calls)
        finally:
            for mine in shares:
                self._ownership.due_heap.note(mine)
        now_ms = self._clock.monotonic_ms()
        replies = sort_replies(partitions, results)
        for mine in replies.lost:
            self._ownership.lose(mine)
        done = replies.done
        for mine, _ in done:
            self._told_again.pop(mine.keys.partition, None)
        # Before what was taken is noted: a URL that was returned may have been taken again in the same call.
        forgotten = [held for mine, _ in done for held in self._note_ends(mine, ends.get(mine, ()))]
        self._handout.held.forget(forgotten, now_ms)
        for mine, exchanged in done:
            self._note_taken(mine, shares.get(mine, 0), exchanged, now_ms)
        replies.raise_failure()
        return True

    @property
    def has_more_due(self) -> bool:
        """Whether a partition is due that was not asked, for want of room."""
        return self._ownership.due_heap.has_due(self._clock.monotonic_ms() + HORIZON_MS)

    def tell_again(self) -> None:
        """Tell the latest outcomes once more with the next calls: Redis was restarted and may have forgotten them."""
        for partition in self._ownership.owned:
            if outcomes := _outcomes(self._handout.held.ended_lately(partition)):
                self._told_again[partition] = outcomes

    def _ends(self, now_ms: int) -> dict[OwnedPartition, list[HeldUrl]]:
        """Ended URLs that may be acknowledged, by partition; their hosts are due after their rest."""
        owned = self._ownership.owned
        by_partition: dict[OwnedPartition, list[HeldUrl]] = {}
        for held in self._handout.held.acknowledgeable(self._outbox.flushed):
            mine = owned.get(held.partition)
            if mine is not None:
                by_partition.setdefault(mine, []).append(held)
                assert held.end is not None, "an ended URL has an end"
                left_ms = held.end.delay_ms - waited_ms(held, now_ms)
                mine.note_due_by(now_ms + left_ms - TOGETHER_MS)
        return by_partition

    def _shares(self, room: int, now_ms: int) -> dict[OwnedPartition, int]:
        """How many URLs to take of which partition with a host that is due; together no more than there is room for."""
        owned = self._ownership.owned
        shares = {}
        draining = []
        for mine in self._ownership.due_heap.take(now_ms + HORIZON_MS):
            if mine.draining:
                draining.append(mine)
            elif owned.get(mine.keys.partition) is mine:
                share = shares[mine] = min(room, mine.take_share)
                room -= share
                if not room:
                    break
        for mine in draining:  # it may stay ours after all
            self._ownership.due_heap.note(mine)
        return shares

    def _call(self, mine: OwnedPartition, ended: Sequence[HeldUrl], share: int, now_ms: int) -> scripts.Call[Exchanged]:
        rows = [_told(held, now_ms) for held in ended]
        for held in ended:
            held.is_told = True
        outcomes = self._outcomes_and_more(ended)
        if self._told_again:
            outcomes = self._told_again.get(mine.keys.partition, b"") + outcomes
        connections, delay_ms = self._policy.host_connections, self._policy.host_delay_ms
        return scripts.exchange_urls(
            mine.keys, mine.identity, connections, share, HORIZON_MS, delay_ms, rows, outcomes=outcomes
        )

    def _outcomes_and_more(self, ended: Sequence[HeldUrl]) -> bytes:
        """The outcomes, what was fetched of accounts whose bytes are limited, and what pages say of their PLDs."""
        told = [_outcomes(ended)]
        for held in ended:
            if held.fetched_bytes and (account := self.bytes_account(held.host, held.url)) is not None:
                told.append(pack_fetched(account, held.fetched_bytes))
            if held.remark:
                told.append(held.remark)
        return b"".join(told)

    def note_ended(self, mine: OwnedPartition, ended: Sequence[HeldUrl]) -> None:
        """Ends that were told, and whose reply was lost, were carried out."""
        self._handout.held.forget(list(self._note_ends(mine, ended)), self._clock.monotonic_ms())

    def _note_ends(self, mine: OwnedPartition, ended: Sequence[HeldUrl]) -> Sequence[HeldUrl]:
        """Redis has heard of them."""
        if any(held.end and not held.end.member for held in ended):
            mine.note_outcomes()
        for held in ended:
            assert held.end is not None, "an ended URL has an end"
            if not held.end.member:
                if held.suspicion is not None:
                    self._handout.suspects.cleared.append(held)
                mine.hot.note_ended(held.host)
                if held.end.counter.startswith("status:"):
                    self.pages += 1
                    self._ownership.hot_share.note(held.end.delay_ms)
        return ended

    def _note_taken(self, mine: OwnedPartition, share: int, reply: Exchanged, now_ms: int) -> None:
        if self._ownership.owned.get(mine.keys.partition) is not mine:
            return  # lost while the reply was under way; its new owner has them
        server_ms, next_due_ms, _, urls = reply
        # In the past where a host waits: the partition whose host has waited longest is asked first.
        mine.note_answer(now_ms + next_due_ms - server_ms if next_due_ms >= 0 else NEVER_MS)
        if share:
            mine.note_take(share, len(urls), is_more_due=mine.due_ms <= now_ms + HORIZON_MS)
        for url in urls:
            # A millisecond more: the clock here was cut off to one, and may be that much further.
            wait_ms = url.due_ms - server_ms
            held = _held(mine.keys.partition, url, now_ms + (wait_ms + 1 if wait_ms > 0 else 0))
            self._handout.held.add(held)
            suspicion = mine.suspects.get(held.seq) if mine.suspects else None
            if not held.url:
                self._handout.give_up(held, "undecodable")
            elif suspicion is not None and self._handout.suspects.note_taken(held, suspicion):
                continue  # it goes no further
            elif not self._handout.put_off_if_late(held, max(0, -wait_ms)):
                self._gatekeeper.offer(held)


def waited_ms(held: HeldUrl, now_ms: int) -> int:
    """What is over of its host's delay: that began when the fetch was over, not with the word of it.

    Rounded down: two clocks cut off up to a millisecond each.
    """
    assert held.end is not None, "an ended URL has an end"
    if not held.ended_ms:
        return 0
    return min(max(0, now_ms - held.ended_ms - 2), held.end.delay_ms)


def _told(held: HeldUrl, now_ms: int) -> Ended:
    """The end, with how much of its host's delay is over."""
    assert held.end is not None, "an ended URL has an end"
    over_ms = waited_ms(held, now_ms)
    return _new_tuple(Ended, (*held.end[:-1], over_ms)) if over_ms else held.end


def _no_account(host: str, url: str) -> None:
    """Nobody's bytes are limited."""


def _outcomes(ended: Sequence[HeldUrl]) -> bytes:
    """What to tell of the URLs that are acknowledged; of one that could not be read nobody knows the key."""
    return b"".join(
        [
            pack_outcome(held.fields.key, held.end.counter, held.detail)
            for held in ended
            if held.end and not held.end.member and held.url
        ]
    )


def _held(partition: int, url: TakenUrl, due_ms: int) -> HeldUrl:
    """A taken URL as the node holds it; without `url` when it cannot be read, which must stop nobody."""
    try:
        fields = unpack_member(url.member)
        text, is_canonical, has_errback = look_at_body(fields.body)
        authority = authority_of(text if is_canonical else canonicalize(text, URL_BYTES_MAX))
    except Exception:
        logger.exception("a URL of %(host)s in Redis cannot be read and is dropped", {"host": url.host})
        seq = seq_of(url.member)
        fields, text, has_errback, authority = Member(seq, 0, 0, 0, 0, b""), "", False, ""
    held = HeldUrl(partition, url.host, due_ms, url.member, fields, text, authority)
    held.has_errback = has_errback
    return held
