"""The whole crawl at a glance, and whether it is finished.

The crawl is finished when two passes over all partitions see everything empty and every counter that only
grows unchanged between them, with no start requests under way.
Links of a page are in the inboxes before the page is acknowledged, so what is not there while nothing is
taken is nowhere.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys, partition_keys
from bigcrawl.scheduler.records.inbox_entry import id_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.scripts import PartitionView


@dataclass(slots=True)
class Survey:
    """Sums over all partitions; hosts and URLs by state."""

    partitions: int
    owned: int = 0
    owners: Counter[str] = field(default_factory=Counter)
    named: set[str] = field(default_factory=set)  # nodes that a partition names, living or dead
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
    inboxes_unfolded: int = 0
    rejected_in: list[int] = field(default_factory=list)  # partitions with inbox entries that could not be read
    batches_pending: int = 0  # partitions whose last admit batch Redis has not taken yet
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def pages(self) -> int:
        """Fetches that brought an answer and were not tried again."""
        return sum(count for name, count in self.counts.items() if name.startswith("status:"))

    @property
    def waiting(self) -> int:
        """URLs discovered, admitted or not, and not taken."""
        return self.urls_inbox + self.urls_disk + self.urls_queued

    @property
    def is_empty(self) -> bool:
        """Nothing waits anywhere, nothing is taken; partitions whose files are damaged are not asked."""
        hosts = self.hosts_ready + self.hosts_waiting + self.hosts_busy
        urls = self.urls_disk or self.urls_queued or self.urls_taken or self.inboxes_unfolded or self.batches_pending
        return not (urls or hosts)

    @property
    def holdup(self) -> str:
        """What keeps the crawl from being finished, where nothing else is left to do; empty when nothing does."""
        if self.counts["damaged"]:
            return (
                "all that is left waits in damaged partitions: mend or restore their files, which `scrapy frontier "
                "verify` names, and start again"
            )
        if self.rejected_in:
            return (
                f"all is done but that {self.counts['rejected']} inbox entries could not be read: `scrapy frontier "
                f"rejected` says why; with --retry it takes them in again, with --drop the crawl does without them"
            )
        return ""

    @property
    def progress(self) -> tuple[int, ...]:
        """The counters that only grow."""
        return tuple(self.counts[name] for name in ("appended", "admitted", "ended", "folded_urls"))


async def survey(client: RedisClient, crawl: str, partitions: int) -> Survey:
    """Look at every partition; changes nothing.

    Cost: one round trip per 512 partitions, about 10 us of Redis a partition.
    """
    calls = [scripts.look_partition(partition_keys(crawl, partition)) for partition in range(partitions)]
    seen = Survey(partitions)
    for partition, view in enumerate(await client.run(calls)):
        _add(seen, view)
        if view.count("rejected"):
            seen.rejected_in.append(partition)
    return seen


def _add(seen: Survey, view: PartitionView) -> None:
    if view.node:
        seen.named.add(view.node)
    if view.node and view.lease_left_ms > 0:
        seen.owned += 1
        seen.owners[view.node] += 1
    for name, value in view.state.items():
        if name != "folded":
            seen.counts[name] += int(value)
    if view.count("damaged"):
        seen.urls_damaged += max(0, view.count("appended_urls") - view.count("folded_urls"))
        seen.urls_damaged += view.count("waiting") + max(0, view.count("hot")) + view.taken
        return
    seen.hosts_ready += view.hosts_ready
    seen.hosts_waiting += view.hosts_waiting
    seen.hosts_busy += view.hosts_busy
    seen.hosts_snoozed += view.hosts_snoozed
    seen.hosts_retired += view.hosts_retired
    seen.urls_inbox += max(0, view.count("appended_urls") - view.count("folded_urls"))
    seen.urls_disk += view.count("waiting")
    seen.urls_queued += max(0, view.count("hot"))
    seen.urls_taken += view.taken
    seen.inboxes_unfolded += id_order(view.inbox_id) > id_order(view.folded)
    seen.batches_pending += view.count("chosen") > view.count("admitted")


class FinishCheck:
    """Watches for the two passes; call `look` when this node is idle."""

    def __init__(self, client: RedisClient, crawl: str, partitions: int, closed: Callable[[], int] = int) -> None:
        """`closed` tells one set of what is withheld by the settings and by hand from another, 0: nothing is."""
        self._closed = closed
        self._client = client
        self._crawl = crawl
        self._partitions = partitions
        self._key = CrawlKeys(crawl).crawl
        self._before: tuple[int, ...] | None = None
        self.stuck_looks = 0  # in a row that found nothing left but a hold-up
        self.holdup = ""  # what the last of them found

    async def is_said(self, seen: Survey) -> bool:
        """Whether some node has found the crawl finished as it is now: the word may be an old one that arrived late."""
        said = await self._client.command("HGET", self._key, "finished")
        return bool(said == self._word(seen))

    async def take_back(self) -> None:
        """There are URLs again: the crawl is not finished after all."""
        self._before = None
        await self._client.command("HDEL", self._key, "finished")

    async def look(self) -> bool:
        """Make one pass; True, and said to all nodes, when it and the one before agree that all is done."""
        seen = await survey(self._client, self._crawl, self._partitions)
        if not seen.is_empty:
            self.stuck_looks = 0
            await self.take_back()
            return False
        if await self._starts_under_way():
            self._before = None
            return False
        self.holdup = seen.holdup
        if seen.holdup:
            await self.take_back()
            self.stuck_looks += 1
            return False
        self.stuck_looks = 0
        if await self.is_said(seen):
            return True
        if self._before != seen.progress:
            self._before = seen.progress
            return False
        await self._client.command("HSET", self._key, "finished", self._word(seen))
        return True

    def _word(self, seen: Survey) -> bytes:
        """What is said of a finished crawl: how far it had come, and what it was not to fetch."""
        return b" ".join(b"%d" % count for count in (*seen.progress, *filter(None, [self._closed()])))

    async def _starts_under_way(self) -> bool:
        names = [name.decode() for name in await self._client.command("HKEYS", self._key)]
        starts = [name for name in names if name.startswith("start:")]
        values = await self._client.commands([("HGET", self._key, name) for name in starts])
        now_ms = self._client.now_ms()
        leases = [value.partition(b"\n")[2] for value in values if value and value.partition(b"\n")[0] != b"done"]
        # One whose lease ran out is nobody's: its node is dead, and maybe its seeds were replaced.
        return any(int(lease_ms) > now_ms for lease_ms in leases)
