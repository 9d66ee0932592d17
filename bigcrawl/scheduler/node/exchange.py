"""Acknowledges safe URLs and takes due ones, in one round trip (steps 9, 12 and 14 of a URL's life)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.replies import sort_replies
from bigcrawl.redisdb.scripts import EndedUrl, ExchangeReply, TakenUrl
from bigcrawl.scheduler.handout.recent import RateMeter, RecentWork
from bigcrawl.scheduler.node.failed_fetches import FailedFetches
from bigcrawl.scheduler.owner.hot.due_heap import NEVER_MS
from bigcrawl.scheduler.records.body import look_at_body
from bigcrawl.scheduler.records.held import HeldUrl, Stage
from bigcrawl.scheduler.records.held_urls import timed_of
from bigcrawl.scheduler.records.member import Member, seq_of, unpack_member
from bigcrawl.scheduler.records.outcomes import pack_outcome
from bigcrawl.scheduler.rules.callbacks import DAMAGED
from bigcrawl.url.canonical import authority_of, canonicalize, host_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl
    from bigcrawl.scheduler.handout.engine_side import EngineSide
    from bigcrawl.scheduler.handout.handout import Handout
    from bigcrawl.scheduler.handout.observers import Observers
    from bigcrawl.scheduler.node.gates import Gates
    from bigcrawl.scheduler.node.outbox import Outbox
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.ownership import Ownership

logger = logging.getLogger(__name__)

HORIZON_MS = 500  # URLs are taken this long before they are due
TOGETHER_MS = 500  # a partition with an end to acknowledge is asked this much sooner, in the same call
_new_tuple = tuple.__new__
URL_BYTES_MAX = 1 << 17  # BIGCRAWL_URL_BYTES_MAX is at most 64 KiB


class UrlExchange:
    def __init__(
        self,
        crawl: JoinedCrawl,
        ownership: Ownership,
        handout: Handout,
        outbox: Outbox,
        gates: Gates,
        engine: EngineSide,
        observers: Observers,
    ) -> None:
        self._policy = crawl.config.politeness
        self._client = crawl.client
        self._clock = crawl.clock
        self._ownership = ownership
        self._handout = handout
        self._outbox = outbox
        self._aside = gates.aside
        self._callbacks = engine.callbacks
        self._marks_of_end = observers.marks_of_end
        self._record_page = observers.record_end
        self._known_rules = gates.robots.known_rules
        self.recent = RecentWork(crawl.config.crawl.name, crawl.node_id, crawl.client, engine)
        self.failed = FailedFetches(crawl.client, crawl.clock, crawl.config.crawl.name, crawl.pld_of)
        self.pages = 0
        self.bytes = 0  # includes repeated tries
        self._rate = RateMeter()
        self.ends: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<UrlExchange pages={self.pages}>"

    def rate(self) -> float:
        return self._rate.rate(self._clock.monotonic_ms(), self.pages)

    async def run(self, *, acknowledge: bool, urls_max: int, places_max: int = 0) -> bool:
        """Acknowledge ended URLs and take new ones in one round trip. Return whether there was any work.

        Besides up to `urls_max` URLs over all partitions, up to `places_max` are taken ahead in place of URLs that end
        in the same call.
        """
        now_ms = self._clock.monotonic_ms()
        # Before the ends, which make partitions due. Hosts at their turn have half of the room, however fast others
        # are.
        share = 2 if self.has_more_due else 1
        ends = self._ends(now_ms) if acknowledge else {}
        free = {owned: len(ended) // share for owned, ended in ends.items()}
        ahead, taken = self._ahead(urls_max // share, places_max, free)
        urls_max -= taken
        shares = self._shares(urls_max, now_ms) if urls_max > 0 else {}
        partitions = [*dict.fromkeys((*ends, *ahead, *shares))]
        if not partitions:
            return False
        calls = [
            self._call(owned, ends.get(owned, ()), shares.get(owned, 0), ahead.get(owned, ()), now_ms)
            for owned in partitions
        ]
        for owned in partitions:
            owned.record_asked()
        self._ownership.table.pending.to_look.update(partitions)
        try:
            results = await self._client.run_each(calls)
        finally:
            for owned in shares:
                self._ownership.due_heap.add_partition(owned)
        now_ms = self._clock.monotonic_ms()
        replies = sort_replies(partitions, results)
        for owned in replies.lost:
            self._ownership.table.remove_lost(owned)
        done = replies.done
        # Ends come first, because the same call may have taken a URL that it returned.
        forgotten = [held for owned, _ in done for held in self._record_ends(owned, ends.get(owned, ()))]
        self._handout.held.forget(forgotten, now_ms, self._client.running_ms)
        self._handout.held.forget_safe(self._client.running_ms)
        for owned, exchanged in done:
            self._record_taken(owned, shares.get(owned, 0), exchanged, now_ms)
        replies.raise_failure()
        return True

    @property
    def has_more_due(self) -> bool:
        return self._ownership.due_heap.has_due(self._clock.monotonic_ms() + HORIZON_MS)

    @property
    def next_ms(self) -> int:
        return self._ownership.due_heap.next_ms - HORIZON_MS

    def _ends(self, now_ms: int) -> dict[OwnedPartition, list[HeldUrl]]:
        """Return the URLs that may be acknowledged, by partition, and note when their hosts are due again."""
        by_number = self._ownership.owned
        by_partition: dict[OwnedPartition, list[HeldUrl]] = {}
        for held in self._handout.held.acknowledgeable(self._outbox.flushed):
            owned = by_number.get(held.partition)
            if owned is not None:
                by_partition.setdefault(owned, []).append(held)
                assert held.end is not None, "an ended URL has an end"
                left_ms = held.end.delay_ms - waited_ms(held, now_ms)
                owned.record_due_by(now_ms + left_ms - TOGETHER_MS)
        return by_partition

    def _ahead(
        self, room: int, places: int, free: dict[OwnedPartition, int]
    ) -> tuple[dict[OwnedPartition, list[tuple[str, int]]], int]:
        """Return how many URLs of which hosts to take ahead of their turns, and how much of `room` they need.

        Up to `places` URLs need no room: as many of a partition as end in the same call (`free`).
        """
        by_number, lanes, room_before = self._ownership.owned, self._handout.lanes, room
        found: dict[OwnedPartition, list[tuple[str, int]]] = {}
        for lacking in lanes.missing_urls():
            owned = by_number.get(lacking.partition)
            if owned is None or owned.draining:
                lanes.shut_lane(lacking.host)
                continue
            more = owned.hot.by_host[lacking.host] - lacking.held
            lanes.record_more(lacking.host, has_more=more > 0)
            owned.schedule.record_use(more * lacking.each_ms)
            free_here = min(free.get(owned, 0), places)
            if (most := min(lacking.urls, more, free_here + room)) > 0:
                found.setdefault(owned, []).append((lacking.host, most))
                used = min(most, free_here)
                free[owned], places, room = free.get(owned, 0) - used, places - used, room - (most - used)
        return found, room_before - room

    def _shares(self, room: int, now_ms: int) -> dict[OwnedPartition, int]:
        by_number = self._ownership.owned
        shares = {}
        for owned in self._ownership.due_heap.take_due(now_ms + HORIZON_MS):
            if owned.draining or by_number.get(owned.keys.partition) is not owned:
                continue
            share = shares[owned] = min(room, owned.take_share)
            room -= share
            if not room:
                break
        return shares

    def _call(
        self, owned: OwnedPartition, ended: Sequence[HeldUrl], share: int, ahead: Sequence[tuple[str, int]], now_ms: int
    ) -> scripts.Call[ExchangeReply]:
        rows = [_end_row(held, now_ms) for held in ended]
        for held in ended:
            held.record_end_sent(self._rows_of(held))
        pace = self._policy.host_connections, share, HORIZON_MS, self._policy.host_delay_ms
        outcomes, timed = b"".join([held.end_rows for held in ended]), timed_of(ended)
        return scripts.exchange_urls(
            owned.keys, owned.identity, *pace, rows, outcomes=outcomes, timed=timed, ahead=ahead
        )

    def _rows_of(self, held: HeldUrl) -> bytes:
        """Return a URL's outcome, and the rows about its account and PLD; no outcome if it is tried again."""
        assert held.end is not None, "an ended URL has an end"
        rows = held.marks
        for note in self._marks_of_end:
            rows = note(held) + rows
        if held.end.member or not held.url:
            return rows
        return pack_outcome(held.fields.key, held.end.counter, held.detail) + rows

    def record_ended(self, owned: OwnedPartition, ended: Sequence[HeldUrl]) -> None:
        now_ms, running_ms = self._clock.monotonic_ms(), self._client.running_ms
        self._handout.held.forget(list(self._record_ends(owned, ended)), now_ms, running_ms)

    def _record_ends(self, owned: OwnedPartition, ended: Sequence[HeldUrl]) -> Sequence[HeldUrl]:
        if any(held.end and not held.end.member for held in ended):
            owned.inbox.record_others()
        self.recent.record_ends(ended)
        for held in ended:
            assert held.end is not None, "an ended URL has an end"
            self.ends[held.end.counter] = self.ends.get(held.end.counter, 0) + 1
            self.bytes += held.end.fetched_bytes
            self.failed.note(held)
            if not held.end.member:
                if held.suspicion is not None:
                    self._handout.suspects.record_cleared(held)
                owned.hot.record_ended(held.host)
                if held.end.counter.startswith("status:"):
                    self.pages += 1
                    self._record_page(held)
                    self._ownership.hot_share.record_rest(held.end.delay_ms)
        return ended

    def _record_taken(self, owned: OwnedPartition, share: int, reply: ExchangeReply, now_ms: int) -> None:
        if self._ownership.owned.get(owned.keys.partition) is not owned:
            return  # its new owner has the URLs
        server_ms, next_due_ms, _, urls, ahead = reply
        # This may be in the past: the partition whose host has waited longest is asked first.
        owned.record_answer(now_ms + next_due_ms - server_ms if next_due_ms >= 0 else NEVER_MS)
        if share:
            owned.record_take(share, len(urls) - ahead, is_more_due=owned.due_ms <= now_ms + HORIZON_MS)
        for number, url in enumerate(urls):
            # One more millisecond, because the clock here is rounded down.
            wait_ms = url.due_ms - server_ms
            held, methods = _held(owned, url, now_ms + (wait_ms + 1 if wait_ms > 0 else 0))
            self._handout.held.add(held)
            if methods and self._is_stopped(held, methods):
                continue
            if held.suspicion is not None and self._handout.suspects.record_taken(held):
                continue
            if number < ahead:
                self._handout.lanes.put_ahead(held)
            elif not self._handout.ends.put_off_if_late(held, self._late_ms(held, wait_ms)):
                self._handout.lanes.put(held)

    def _late_ms(self, held: HeldUrl, wait_ms: int) -> int:
        """Return how late a URL was taken, without the head start of a host whose robots.txt is unknown."""
        head_start_ms = self._policy.robots_head_start_ms
        if wait_ms < 0 and head_start_ms and self._known_rules(held.authority) is None:
            wait_ms += head_start_ms
        return max(0, -wait_ms)

    def _is_stopped(self, held: HeldUrl, methods: Sequence[str]) -> bool:
        """Set a URL aside, or drop it, if the spider lacks one of these methods."""
        callbacks = self._callbacks
        missing = callbacks.first_missing(methods)
        if any(map(callbacks.drops, (*methods, missing))):
            self._handout.ends.drop_url(held, "undecodable")
        elif missing:
            why = "its request is damaged" if missing == DAMAGED else f"the spider has no method {missing}"
            self._aside.put_unrunnable(held, why)
        return held.stage is Stage.ENDED


def waited_ms(held: HeldUrl, now_ms: int) -> int:
    """Return how much of its host's delay has passed since the fetch ended, rounded down, as two clocks differ."""
    assert held.end is not None, "an ended URL has an end"
    if not held.ended_ms:
        return 0
    return min(max(0, now_ms - (held.answered_ms or held.ended_ms) - 2), held.end.delay_ms)


def _end_row(held: HeldUrl, now_ms: int) -> EndedUrl:
    assert held.end is not None, "an ended URL has an end"
    over_ms = waited_ms(held, now_ms)
    return _new_tuple(EndedUrl, (*held.end[:-1], over_ms)) if over_ms else held.end


def _held(owned: OwnedPartition, url: TakenUrl, due_ms: int) -> tuple[HeldUrl, tuple[str, ...]]:
    """Return a taken URL and the methods that its request names; if unreadable, no `url`, and `DAMAGED`."""
    fields: Member | None = None
    try:
        fields = unpack_member(url.member)
        text, is_canonical, has_errback, methods = look_at_body(fields.body)
        canonical = text if is_canonical else canonicalize(text, URL_BYTES_MAX)
        authority = authority_of(canonical)
        if not authority.endswith("//" + url.host) and host_of(canonical) != url.host:
            raise ValueError(f"it has another host than {url.host}")  # noqa: TRY301
    except Exception as error:  # noqa: BLE001 - of damaged bytes
        logger.debug("a URL of %(host)s in Redis cannot be read: %(error)r", {"host": url.host, "error": error})
        fields = fields or Member(seq_of(url.member), 0, 0, 0, 0, b"")
        text, has_errback, authority, methods = "", False, "", (DAMAGED,)
    suspicion = owned.suspects.get(fields.seq) if owned.suspects else None
    held = HeldUrl(owned.keys.partition, url.host, due_ms, url.member, fields, text, authority, has_errback, suspicion)
    return held, methods
