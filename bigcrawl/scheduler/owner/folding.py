"""Runs rounds of partitions' steps.

    due partitions -> read inboxes, one round trip -> [worker thread] fold each -> admit and publish, one round trip

Rows owed to other partitions are sent first, so a folded inbox owes them nothing. If Redis is full, inboxes are folded
all the same, which makes room. If a round fails after a commit, the next round sends the committed batches.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.histogram import Histogram
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.scheduler.owner.hot.due_heap import Timetable
from bigcrawl.scheduler.owner.publishing import is_publish
from bigcrawl.scheduler.queues.timed import NEVER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from bigcrawl.redisdb import scripts
    from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl
    from bigcrawl.scheduler.owner.hot.hot_share import HotShare, LatenessCheck
    from bigcrawl.scheduler.owner.owed_sender import OwedSender
    from bigcrawl.scheduler.owner.owned_budgets import OwnedBudgets
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.owned_table import OwnedTable
    from bigcrawl.scheduler.partition.file_work import FileThread
    from bigcrawl.scheduler.partition.partition import Step
    from bigcrawl.scheduler.records.inbox_entry import InboxEntry

logger = logging.getLogger(__name__)

STEPS_AT_ONCE = 64
INBOX_ENTRIES_AT_ONCE = 2_048  # over all partitions of a round; bounds its memory
INBOX_ENTRIES_EACH = 256
INBOX_ENTRIES_AT_LEAST = 32  # an entry has one to a thousand URLs
OUTCOMES_LOOK_MS = 1_000


def _turn_of(owned: OwnedPartition) -> tuple[int, int]:
    return owned.schedule.stepped_ms, owned.keys.partition


class FoldRound(NamedTuple):
    stepped: int
    admitted: int


class Folding:
    def __init__(
        self,
        crawl: JoinedCrawl,
        table: OwnedTable,
        owed_sender: OwedSender,
        thread: FileThread,
        hot_share: HotShare,
        lateness: LatenessCheck,
        budgets: OwnedBudgets,
    ) -> None:
        self._client = crawl.client
        self._clock = crawl.clock
        self._step_ms = crawl.config.frontier.step_ms
        self._table = table
        self._owed_sender = owed_sender
        self._thread = thread
        self._hot_share = hot_share
        self._lateness = lateness
        self._budgets = budgets
        self._unconfirmed: set[OwnedPartition] = set()
        self.step_times = Histogram()
        self.duplicates = 0
        self._outcomes_look_ms = 0
        self._times = Timetable()
        self._need = (False, False)

    async def step_due(self, *, starved: bool, idle: bool = False) -> FoldRound:
        """Run the steps that are due. `starved`: too little to fetch; `idle`: no work at all."""
        untold = await self._owed_sender.send()
        refused = await self._admit_pending() or untold
        behind = frozenset(self._unconfirmed)
        now_ms = self._clock.monotonic_ms()
        if self._lateness.update(now_ms):
            for owned in self._table.by_number.values():
                owned.set_extra_limit(self._lateness.extra_divisor)
                self._table.pending.to_step.add(owned)
        shares = entries_per_partition(self._due_partitions(now_ms, starved=starved, idle=idle))
        admitted = await self._step_each(shares, behind, now_ms) if shares else 0
        if refused is not None:
            raise refused
        return FoldRound(len(shares), admitted)

    def _due_partitions(self, now_ms: int, *, starved: bool, idle: bool) -> list[OwnedPartition]:
        crawls_ms = self._client.now_ms()
        now_s = crawls_ms // 1000
        looks_for_outcomes = idle or now_ms >= self._outcomes_look_ms
        if looks_for_outcomes:
            self._outcomes_look_ms = now_ms + OUTCOMES_LOOK_MS
        pending, step_ms = self._table.pending.to_step, self._step_ms
        times = self._times.take_due(now_ms) if self._need == (starved, idle) else self._times.take_all()
        pending.update(self._table.owned_among(times))
        self._need = (starved, idle)
        sound = [owned for owned in pending if not owned.is_damaged]
        due = [
            owned
            for owned in sound
            if owned.schedule.wants_step(now_ms, step_ms, starved=starved, now_s=now_s)
            or (looks_for_outcomes and owned.schedule.wants_outcomes(now_ms, step_ms, idle=idle))
        ]
        for owned in set(sound).difference(due):
            self._times.set_time(owned.keys.partition, self._next_check_ms(owned, now_ms, crawls_ms))
        pending.intersection_update(due)
        return sorted(due, key=_turn_of)[:STEPS_AT_ONCE]

    def _next_check_ms(self, owned: OwnedPartition, now_ms: int, crawls_ms: int) -> int:
        schedule = owned.schedule
        at_ms = schedule.next_check_ms(now_ms, self._step_ms, crawls_ms // 1000)
        if owned.inbox.has_others:
            at_ms = min(at_ms, self._outcomes_look_ms)
        if schedule.next_timed_s == NEVER_S or schedule.next_timed_s <= crawls_ms // 1000:
            return at_ms
        return min(at_ms, now_ms + 1000 * schedule.next_timed_s - crawls_ms)

    @property
    def next_ms(self) -> int:
        if self._table.pending.to_step or self._unconfirmed or self._owed_sender.is_keeping:
            return 0
        return self._times.next_ms

    async def _step_each(
        self, shares: dict[OwnedPartition, int], behind: Collection[OwnedPartition], now_ms: int
    ) -> int:
        """Step partitions. Partitions `behind` with admissions fold their inboxes only."""
        due = list(shares)
        # Counted before inboxes are read, which then have the links of all URLs that have ended.
        hot = {owned: dict(owned.hot.by_host) for owned in due}
        inboxes = await self._read_inboxes(shares)
        folds = [self._fold_of(owned, inboxes[owned], hot[owned], may_admit=owned not in behind) for owned in due]
        self._unconfirmed.update(due)  # before the commit, so that any later failure sends the batch again
        try:
            results = await self._thread.run_each(folds)
        finally:
            for owned in due:
                self._table.record_files(owned)
        steps = {p: step for p, step in zip(due, results, strict=True) if not isinstance(step, BigcrawlError)}
        calls: list[tuple[OwnedPartition, scripts.Call[Any]]] = []
        for owned, step in steps.items():
            self.duplicates += step.duplicates
            calls += [(owned, call) for call in owned.after_step(step, len(inboxes[owned]), now_ms)]
            self._send_results(step)
        await self._owed_sender.send(steps)  # the committed steps are recorded by now
        await self._table.run(sorted(calls, key=lambda asked: is_publish(asked[1])))
        self._confirm_steps([owned for owned in due if owned not in behind])
        await self._budgets.record_admitted(steps)
        self._table.set_damaged_apart(due, results)
        return sum(len(step.batch.urls) for step in steps.values() if step.batch)

    def _send_results(self, step: Step) -> None:
        for message in step.messages:
            logger.info("%(message)s", {"message": message})
        self._owed_sender.offer_hints(step)

    def _fold_of(
        self, owned: OwnedPartition, inbox: list[InboxEntry], hot: Mapping[str, int], *, may_admit: bool
    ) -> Callable[[], Step]:
        """Return a step for the worker thread, with copies of data that the loop may change during it."""
        owned.disk.sources.set_host_share(self._hot_share.urls)
        room, extra_room = (owned.hot.room, owned.hot.extra_room) if may_admit else (0, 0)
        now_s = self._client.now_ms() // 1000
        return partial(self._time_fold, partial(owned.fold, inbox, room, hot, extra_room, now_s))

    def _time_fold(self, fold: Callable[[], Step]) -> Step:
        since_ms = self._clock.monotonic_ms()
        step = fold()
        self.step_times.count_ms(self._clock.monotonic_ms() - since_ms)
        return step

    async def _read_inboxes(self, shares: dict[OwnedPartition, int]) -> dict[OwnedPartition, list[InboxEntry]]:
        read = [owned for owned, share in shares.items() if share]
        commands = [owned.inbox.command(owned.disk.manifest.inbox_id, shares[owned]) for owned in read]
        replies = await self._client.commands(commands)
        inboxes: dict[OwnedPartition, list[InboxEntry]] = {owned: [] for owned in shares}
        return inboxes | {owned: owned.inbox.parse(reply) for owned, reply in zip(read, replies, strict=True)}

    async def _admit_pending(self) -> RedisRefusedError | None:
        """Send unconfirmed batches again. Return a refusal by Redis: inboxes must still be folded."""
        behind = [p for p in self._unconfirmed if p.admissions.are_pending and not p.is_damaged and self._table.has(p)]
        self._unconfirmed = set(behind)
        if behind:
            calls = [(owned, call) for owned in behind for call in owned.admissions.send_again(owned.identity)]
            try:
                await self._table.run(calls)
            except RedisRefusedError as error:
                return error
            self._confirm_steps(behind)
        return None

    def _confirm_steps(self, stepped: Sequence[OwnedPartition]) -> None:
        now_ms = self._clock.monotonic_ms()
        for owned in stepped:
            owned.record_admitted(now_ms)
        self._unconfirmed.difference_update(stepped)


def entries_per_partition(due: Sequence[OwnedPartition]) -> dict[OwnedPartition, int]:
    """Return how many inbox entries to read from each partition in one round: many from few partitions."""
    shares: dict[OwnedPartition, int] = {}
    room = INBOX_ENTRIES_AT_ONCE
    for owned in due:
        share, inbox = 0, owned.inbox
        if inbox.has_urls and owned.may_read_inbox:
            share = min(INBOX_ENTRIES_EACH, max(INBOX_ENTRIES_AT_LEAST, inbox.unfolded_urls))
            if share > room:
                break
            room -= share
        elif inbox.has_others and owned.may_read_inbox:
            share = INBOX_ENTRIES_EACH
        shares[owned] = share
    return shares
