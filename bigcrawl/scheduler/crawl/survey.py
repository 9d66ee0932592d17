"""The state of the whole crawl in figures, and whether it is finished.

The crawl is finished when two passes over all partitions find everything empty, no start requests under way, and every
monotonic counter unchanged between them. Withheld URLs do not count if the rules in force withhold them. A page's links
are in the inboxes before the page is acknowledged, so when nothing is taken, the passes see every URL.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys, PartitionKeys, partition_keys
from bigcrawl.scheduler.rules.callbacks import DAMAGED

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.scripts import DueHost, PartitionSums

METHODS: Final = "unrunnable_methods"
"""In a partition's state: the methods for which its unrunnable URLs wait, `parse_item=28 ?=2`."""

AT_ONCE: Final = 128


@dataclass(slots=True)
class Survey:
    partitions: int
    owned: int = 0
    owners: Counter[str] = field(default_factory=Counter)
    named: set[str] = field(default_factory=set)
    hosts_ready: int = 0
    hosts_waiting: int = 0
    hosts_busy: int = 0
    hosts_snoozed: int = 0
    hosts_retired: int = 0
    urls_inbox: int = 0
    urls_disk: int = 0
    urls_queued: int = 0
    urls_taken: int = 0
    urls_damaged: int = 0
    urls_missing: int = 0
    urls_uncounted: int = 0  # seen, and in no place; nonzero only through a defect in bigcrawl
    inboxes_unfolded: int = 0
    rejected_in: list[int] = field(default_factory=list)
    batches_pending: int = 0
    rows_untold: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    unrunnable: Counter[str] = field(default_factory=Counter)
    first_with_work: int | None = None
    next_due: DueHost | None = None
    asked: set[int] = field(default_factory=set)  # marks of the rules by which partitions withhold URLs

    @property
    def pages(self) -> int:
        return sum(count for name, count in self.counts.items() if name.startswith("status:"))

    @property
    def waiting(self) -> int:
        return self.urls_inbox + self.urls_disk + self.urls_queued

    @property
    def is_empty(self) -> bool:
        """Whether no URL waits or is taken, apart from damaged and missing partitions."""
        hosts = self.hosts_ready + self.hosts_waiting + self.hosts_busy
        urls = self.urls_disk or self.urls_queued or self.urls_taken or self.inboxes_unfolded or self.batches_pending
        return not (urls or hosts or self.rows_untold)

    @property
    def holdup(self) -> str:
        """The reason why a crawl without work is not finished, if any."""
        if self.counts["damaged"]:
            return (
                "all URLs that are left wait in damaged partitions: use `scrapy frontier repair`, or restore the files "
                "that it names, and start again"
            )
        if self.counts["missing"]:
            return (
                "all URLs that are left wait in partitions whose files are nowhere left: bring the files back, start "
                "the node that has them, or start nodes with BIGCRAWL_LOST_PARTITIONS=refetch"
            )
        if self.rejected_in:
            return (
                f"all else is done, but {self.counts['rejected']} inbox entries could not be read: `scrapy frontier "
                f"rejected` says why; with --retry it reads them again, with --drop the crawl ends without them"
            )
        if self.counts["unrunnable"]:
            return f"all else is done, but {self.waits_for_code}"
        return ""

    @property
    def waits_for_code(self) -> str:
        """How many URLs wait for a spider with their methods, and how to release them."""
        if not (urls := self.counts["unrunnable"]):
            return ""
        methods = [(name, urls) for name, urls in self.unrunnable.most_common() if name != DAMAGED]
        parts = [f"{urls:,} for the method {name}" for name, urls in methods]
        if damaged := urls - sum(urls for _, urls in methods):
            parts.append(f"{damaged:,} whose request cannot be decoded")
        return (
            f"{urls:,} URLs wait that no spider could run: {', '.join(parts)}. They continue after a start with a "
            f"spider that can, or by BIGCRAWL_CALLBACKS"
        )

    @property
    def progress(self) -> tuple[int, ...]:
        return tuple(self.counts[name] for name in ("appended_urls", "admitted", "ended", "folded_urls"))


async def survey(client: RedisClient, crawl: str, partitions: int) -> Survey:
    """Add up the figures of all partitions, `AT_ONCE` per round trip, so that Redis serves others in between."""
    keys = [partition_keys(crawl, partition) for partition in range(partitions)]
    seen = await _summed(client, keys)
    if seen.counts["unrunnable"]:
        for text in await client.commands([("HGET", each.state, METHODS) for each in keys]):
            for row in (text or b"").decode("utf-8", "replace").split():
                method, _, urls = row.rpartition("=")
                seen.unrunnable[method] += int(urls) if urls.isdigit() else 0
    return seen


async def _summed(client: RedisClient, keys: list[PartitionKeys]) -> Survey:
    seen, partitions = Survey(len(keys)), len(keys)
    if await client.is_cluster():
        for sums in await client.run([scripts.sum_partitions([each]) for each in keys]):
            _add(seen, sums)
        return seen
    for start in range(0, partitions, AT_ONCE):
        [sums] = await client.run([scripts.sum_partitions(keys[start : start + AT_ONCE])])
        _add(seen, sums)
    return seen


def _add(seen: Survey, sums: PartitionSums) -> None:
    for name, number in sums.sums.items():
        setattr(seen, name, getattr(seen, name) + number)
    seen.counts.update(sums.counts)
    seen.named.update(sums.owners)
    seen.owners.update({node: leases for node, leases in sums.owners.items() if leases})
    seen.owned += sum(sums.owners.values())
    seen.rejected_in += sums.rejected_in
    seen.asked |= sums.asked
    if seen.first_with_work is None:
        seen.first_with_work = sums.first_with_work
    if sums.next_due is not None and (seen.next_due is None or sums.next_due.due_ms < seen.next_due.due_ms):
        seen.next_due = sums.next_due


class FinishCheck:
    def __init__(
        self,
        client: RedisClient,
        crawl: str,
        partitions: int,
        rules_mark: Callable[[], int] = int,
        can_run: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`rules_mark` returns a checksum of the current rules, `can_run` whether the spider has a method."""
        self._rules_mark = rules_mark
        self._can_run = can_run
        self._client = client
        self._crawl = crawl
        self._partitions = partitions
        self._key = CrawlKeys(crawl).crawl
        self._before: tuple[int, ...] | None = None
        self._had_work: int | None = None
        self.stuck_passes = 0
        self.holdup = ""
        self.ended = 0  # URLs, in the last pass

    @property
    def is_near(self) -> bool:
        return self._before is not None

    @property
    def has_found_work(self) -> bool:
        return self._had_work is not None

    async def is_announced(self, seen: Survey) -> bool:
        if self._rules_have_changed(seen):
            return False
        announced = await self._client.command("HGET", self._key, "finished")
        return bool(announced == self._announcement(seen))

    async def revoke_end(self) -> None:
        self._before = None
        await self._client.command("HDEL", self._key, "finished")

    async def look(self) -> bool:
        """Do one pass, or re-read the partition that last had work.

        Announce the end and return True if two passes agree.
        """
        if self._had_work is not None and not await self._is_empty(self._had_work):
            await self.revoke_end()
            return False
        seen = await survey(self._client, self._crawl, self._partitions)
        self._had_work, self.ended = seen.first_with_work, seen.counts["ended"]
        if not seen.is_empty or self._rules_have_changed(seen):
            self.stuck_passes = 0
            await self.revoke_end()
            return False
        if await has_starts_under_way(self._client, self._key):
            self._before = None
            return False
        self.holdup = seen.holdup
        if seen.holdup:
            await self.revoke_end()
            # That node ends, and this one takes over its partitions and can run their URLs.
            is_heir = any(self._can_run(method) for method, urls in seen.unrunnable.items() if urls)
            self.stuck_passes = 0 if is_heir else self.stuck_passes + 1
            return False
        self.stuck_passes = 0
        if await self.is_announced(seen):
            return True
        if self._before != seen.progress:
            self._before = seen.progress
            return False
        await self._client.run([scripts.announce_end(CrawlKeys(self._crawl), self._announcement(seen))])
        return True

    async def _is_empty(self, partition: int) -> bool:
        [sums] = await self._client.run([scripts.sum_partitions([partition_keys(self._crawl, partition)])])
        return sums.first_with_work is None

    def _announcement(self, seen: Survey) -> bytes:
        return b" ".join(b"%d" % count for count in seen.progress)

    def _rules_have_changed(self, seen: Survey) -> bool:
        return bool(seen.asked - {self._rules_mark()})


async def has_starts_under_way(client: RedisClient, key: str) -> bool:
    names = [name.decode() for name in await client.command("HKEYS", key)]
    starts = [name for name in names if name.startswith("start:")]
    values = await client.commands([("HGET", key, name) for name in starts])
    now_ms = client.now_ms()
    leases = [value.partition(b"\n")[2] for value in values if value and value.partition(b"\n")[0] != b"done"]
    # An expired claim does not count: its node is dead, and its seeds may have been replaced.
    return any(int(lease_ms) > now_ms for lease_ms in leases)
