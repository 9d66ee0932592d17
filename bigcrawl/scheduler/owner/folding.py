"""Rounds of steps (steps 4 to 8): which partitions step, what they read, and what is sent to Redis afterwards.

    due partitions -> read inboxes, one round trip -> [worker thread] fold each -> admit and publish, one round trip

What the steps have found of near copies is sent to the partitions of these contents first. So an inbox that counts as
folded owes nothing to another, unless Redis is full: then inboxes are folded all the same, which makes room.

If a round fails after a commit, the next round sends the committed batches to Redis.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.histogram import Histogram
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.scheduler.budgets.mirrors import mirror_change_text
from bigcrawl.scheduler.budgets.traps import trap_change_text
from bigcrawl.scheduler.owner.publishing import is_publish
from bigcrawl.scheduler.owner.timetable import Timetable
from bigcrawl.scheduler.queues.revisits import NEVER_S
from bigcrawl.scheduler.records.contents import rows_by_partition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from bigcrawl.clock import Clock
    from bigcrawl.redisdb import scripts
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.gates.delays import Paces
    from bigcrawl.scheduler.owner.crawl_budgets import CrawlBudgets
    from bigcrawl.scheduler.owner.found_sender import FoundSender
    from bigcrawl.scheduler.owner.hot.hot_share import HotShare, Lateness
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.owned_table import OwnedTable
    from bigcrawl.scheduler.partition.file_work import FileThread
    from bigcrawl.scheduler.partition.partition import PartitionLimits, Step
    from bigcrawl.scheduler.queues.listed_pages import ListedPages
    from bigcrawl.scheduler.records.contents import ContentRow
    from bigcrawl.scheduler.records.inbox_entry import InboxEntry

logger = logging.getLogger(__name__)

STEPS_AT_ONCE = 64  # partitions in one round
INBOX_ENTRIES_AT_ONCE = 2_048  # with URLs, over all partitions of a round; bounds its memory
INBOX_ENTRIES_EACH = 256
INBOX_ENTRIES_AT_LEAST = 32  # of a partition with entries; an entry may have one URL or a thousand
OUTCOMES_LOOK_MS = 1_000  # between two looks for partitions with nothing but outcomes to fold


def _turn_of(owned: OwnedPartition) -> tuple[int, int]:
    """The partition that has waited longest comes first."""
    return owned.schedule.stepped_ms, owned.keys.partition


class Round(NamedTuple):
    """What a round came to.

    Attributes:
        stepped: how many partitions stepped.
        admitted: how many URLs were admitted.
    """

    stepped: int
    admitted: int


class Folding:
    """Steps the partitions of one node.

    Args:
        client: of the crawl's Redis.
        partitions: how many the crawl has.
        clock: of the node.
        step_ms: how long keys gather while there is enough to fetch.
        table: the partitions.
        found_sender: tells other partitions what the steps find of near copies.
        thread: does the file work.
        hot_share: how many URLs of a host may be hot.
        crawl_budgets: the budgets of PLDs.
        paces: gets the budgets of hosts whose URLs are admitted.
        limits: when a PLD is a trap or a mirror, among others.
        late_ms: returns how long hosts wait after they are due.
        lateness: limits extra URLs according to `late_ms`.
        listed: when pages were changed, as their sites say.
        offer_hint: takes rows for other partitions, which may be lost.
    """

    def __init__(
        self,
        client: RedisClient,
        partitions: int,
        clock: Clock,
        step_ms: int,
        table: OwnedTable,
        found_sender: FoundSender,
        thread: FileThread,
        hot_share: HotShare,
        crawl_budgets: CrawlBudgets,
        paces: Paces,
        limits: PartitionLimits,
        late_ms: Callable[[], float],
        lateness: Lateness,
        listed: ListedPages,
        offer_hint: Callable[[ContentRow], None],
    ) -> None:
        self._client = client
        self._partitions = partitions
        self._clock = clock
        self._step_ms = step_ms
        self._table = table
        self._found_sender = found_sender
        self._thread = thread
        self._hot_share = hot_share
        self._crawl_budgets = crawl_budgets
        self._paces = paces
        self._limits = limits
        self._late_ms = late_ms
        self._lateness = lateness
        self._listed = listed
        self._offer_hint = offer_hint
        self._unconfirmed: set[OwnedPartition] = set()  # partitions with an admit batch that Redis may not have
        self.step_times = Histogram()  # of the file work of each; the worker thread writes it
        self._outcomes_look_ms = 0  # when to look for them again, on the monotonic clock
        self._times: Timetable[OwnedPartition] = Timetable()
        self._need = (False, False)  # whether the node was starved and idle at the last look

    def __repr__(self) -> str:
        return f"<Folding of {self._table!r} unconfirmed={len(self._unconfirmed)}>"

    async def step_due(self, *, starved: bool, idle: bool = False) -> Round:
        """Run the steps that are due. A partition costs nothing until something happens to it, or its time comes.

        Args:
            starved: whether the node has too little to fetch.
            idle: whether it has nothing at all to do.

        Raises:
            TransientStoreError: Redis is unreachable, or the disk is full. Nothing is lost.
        """
        untold = await self._found_sender.send()
        refused = await self._admit_pending() or untold
        behind = frozenset(self._unconfirmed)
        now_ms = self._clock.monotonic_ms()
        if self._lateness.note(self._late_ms(), now_ms):
            for owned in self._table.by_number.values():
                owned.limit_extra(self._lateness.extra_divisor)
                self._table.news.to_step.add(owned)
        shares = shares_of(self._due(now_ms, starved=starved, idle=idle))
        admitted = await self._step_each(shares, behind, now_ms) if shares else 0
        if refused is not None:
            raise refused
        return Round(len(shares), admitted)

    def _due(self, now_ms: int, *, starved: bool, idle: bool) -> list[OwnedPartition]:
        """The partitions to step now. Those that have waited longest come first, so that each gets its turn."""
        now_s = self._client.now_ms() // 1000
        looks_for_outcomes = idle or now_ms >= self._outcomes_look_ms
        if looks_for_outcomes:
            self._outcomes_look_ms = now_ms + OUTCOMES_LOOK_MS
        news, step_ms = self._table.news.to_step, self._step_ms
        news.update(self._times.take(now_ms) if self._need == (starved, idle) else self._times.take_all())
        self._need = (starved, idle)
        sound = [owned for owned in news if self._table.has_sound(owned)]
        due = [
            owned
            for owned in sound
            if owned.schedule.wants_step(now_ms, step_ms, starved=starved, now_s=now_s)
            or (looks_for_outcomes and owned.schedule.wants_outcomes(now_ms, step_ms, idle=idle))
        ]
        for owned in set(sound).difference(due):
            self._times.note(owned, self._next_look_ms(owned, now_ms))
        news.intersection_update(due)
        return sorted(due, key=_turn_of)[:STEPS_AT_ONCE]

    def _next_look_ms(self, owned: OwnedPartition, now_ms: int) -> int:
        """When a step of a partition that is not due now may be, if nothing happens until then."""
        schedule, crawls_ms = owned.schedule, self._client.now_ms()
        at_ms = schedule.next_look_ms(now_ms, self._step_ms, crawls_ms // 1000)
        if owned.inbox.has_others:
            at_ms = min(at_ms, self._outcomes_look_ms)
        if schedule.next_revisit_s == NEVER_S or schedule.next_revisit_s <= crawls_ms // 1000:
            return at_ms
        return min(at_ms, now_ms + 1000 * schedule.next_revisit_s - crawls_ms)

    @property
    def next_ms(self) -> int:
        """When to look again, if nothing happens until then, on the monotonic clock; 0: soon."""
        if self._table.news.to_step or self._unconfirmed or self._found_sender.is_keeping:
            return 0
        return self._times.next_ms

    async def _step_each(
        self, shares: dict[OwnedPartition, int], behind: Collection[OwnedPartition], now_ms: int
    ) -> int:
        """Step partitions. Those `behind` with earlier admissions fold their inboxes and admit nothing."""
        due = list(shares)
        inboxes = await self._read_inboxes(shares)
        folds = [self._fold_of(owned, inboxes[owned], may_admit=owned not in behind) for owned in due]
        self._unconfirmed.update(due)  # before the commit, so that a batch is sent again whatever fails later
        try:
            results = await self._thread.run_each(folds)
        finally:
            for owned in due:
                self._table.news.note(owned)
        steps = {p: step for p, step in zip(due, results, strict=True) if not isinstance(step, BigcrawlError)}
        calls: list[tuple[OwnedPartition, scripts.Call[Any]]] = []
        for owned, step in steps.items():
            calls += [(owned, call) for call in owned.after_step(step, len(inboxes[owned]), now_ms)]
            self._tell(step)
        await self._found_sender.send(steps)  # what was committed is noted by now, whatever becomes of this
        # Admissions first: consecutive calls of one script are one command.
        await self._table.run(sorted(calls, key=lambda asked: is_publish(asked[1])))
        self._confirm([owned for owned in due if owned not in behind])
        if self._paces.are_scaled:
            self._paces.note(await self._thread.run(lambda: self._budgets_of(steps)))
        self._table.set_damaged_apart(due, results)
        return sum(len(step.batch.urls) for step in steps.values() if step.batch)

    def _tell(self, step: Step) -> None:
        """Log which budgets are lowered from now on, and offer what other partitions are to know of PLDs."""
        for trap in step.trap_changes:
            logger.info("%(change)s", {"change": trap_change_text(trap, self._limits.traps)})
        for mirror in step.mirror_changes:
            logger.info("%(change)s", {"change": mirror_change_text(mirror, self._limits.mirrors)})
        for kind, rows in step.told:
            for row in rows_by_partition(kind, rows, self._partitions):
                self._offer_hint(row)

    def _fold_of(self, owned: OwnedPartition, inbox: list[InboxEntry], *, may_admit: bool) -> Callable[[], Step]:
        """A step for the worker thread, with copies of what the loop may change meanwhile."""
        owned.disk.sources.set_host_share(self._hot_share.urls)
        owned.disk.sources.set_modified(self._listed)
        hot = owned.hot
        room, extra_room = (hot.room, hot.extra_room) if may_admit else (0, 0)
        now_s = self._client.now_ms() // 1000
        return partial(self._timed, partial(owned.fold, inbox, room, dict(hot.by_host), extra_room, now_s))

    def _timed(self, fold: Callable[[], Step]) -> Step:
        """Run a step, and count its time. Runs in the worker thread."""
        since_ms = self._clock.monotonic_ms()
        step = fold()
        self.step_times.note(self._clock.monotonic_ms() - since_ms)
        return step

    async def _read_inboxes(self, shares: dict[OwnedPartition, int]) -> dict[OwnedPartition, list[InboxEntry]]:
        read = [owned for owned, share in shares.items() if share]
        commands = [owned.inbox.command(owned.disk.manifest.inbox_id, shares[owned]) for owned in read]
        replies = await self._client.commands(commands)
        inboxes: dict[OwnedPartition, list[InboxEntry]] = {owned: [] for owned in shares}
        return inboxes | {owned: owned.inbox.parse(reply) for owned, reply in zip(read, replies, strict=True)}

    def _budgets_of(self, steps: dict[OwnedPartition, Step]) -> dict[str, int]:
        """The budgets of the hosts whose URLs were admitted. Runs in a worker thread."""
        found: dict[str, int] = {}
        for owned, step in steps.items():
            if step.batch is not None:
                hosts = list({url.host for url in step.batch.urls})
                found |= zip(hosts, self._crawl_budgets.budgets_of(owned.disk, hosts), strict=True)
        return found

    # --- admissions that Redis may not have

    async def _admit_pending(self) -> RedisRefusedError | None:
        """Send again the batches that were committed but not admitted, because Redis became unreachable in between.

        Returns:
            The error if Redis refuses them, for instance because it is out of memory. Inboxes must still be folded.
        """
        behind = [p for p in self._unconfirmed if p.admissions.are_pending and not p.is_damaged and self._table.has(p)]
        self._unconfirmed = set(behind)
        if behind:
            calls = [(owned, call) for owned in behind for call in owned.admissions.send_again(owned.identity)]
            try:
                await self._table.run(calls)
            except RedisRefusedError as error:
                return error
            self._confirm(behind)
        return None

    def _confirm(self, stepped: Sequence[OwnedPartition]) -> None:
        now_ms = self._clock.monotonic_ms()
        for owned in stepped:
            owned.note_admitted(now_ms)
        self._unconfirmed.difference_update(stepped)


def shares_of(due: Sequence[OwnedPartition]) -> dict[OwnedPartition, int]:
    """How many inbox entries to read of each partition in one round.

    A step of thousands of keys costs little more than a step of a few. So if much has gathered, a round reads much of
    few partitions. Otherwise the fold would fall behind spiders that find many links.
    """
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
            share = INBOX_ENTRIES_EACH  # outcomes are small
        shares[owned] = share
    return shares
