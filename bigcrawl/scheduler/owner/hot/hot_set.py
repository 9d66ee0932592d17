"""A partition's share of the hot set: its URLs in Redis, including taken ones, as its owner counts them.

The owner adds admitted URLs and subtracts ended ones. Each comparison with Redis starts a new count. A host is away
when it is snoozed for a minute or more, or retired. It keeps at most one URL in Redis (`parking`). Admit batches are
numbered, committed before they are sent, and sent until confirmed.
"""

from __future__ import annotations

import struct
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.partition.partition import ADMIT_URLS_MAX
from bigcrawl.scheduler.records.member import order_of, pack_member

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.redisdb.scripts import Identity, ReconcileReply
    from bigcrawl.scheduler.partition.admit_batch import AdmitBatch
    from bigcrawl.scheduler.partition.committed import CommittedFiles
    from bigcrawl.scheduler.records.at_gates import Suspicion

HOT_URLS_MIN = 64
LOOK_MS = 60_000  # away hosts are read again after this time, even if Redis has counted no change


class InRedis(NamedTuple):
    """A partition's URLs in Redis, when none of them is taken.

    Attributes:
        due_in_ms: how soon the first host is due; None if no URL waits.
        may_have_entries: whether the inbox ever had entries, as far as Redis and the disk knew at the claim.
    """

    by_host: Mapping[str, int]
    due_in_ms: int | None = None
    suspects: Mapping[int, Suspicion] = MappingProxyType({})
    may_have_entries: bool = True


class AwayHosts:
    """Hosts that are away. `exchange_urls` decides which they are, and counts each change in Redis.

    Attributes:
        hot_max: how many URLs of each host may be hot; 0 for those in `given_up`, which the crawl does not wait for.
    """

    def __init__(self, *, may_be_some: bool = True) -> None:
        """With `may_be_some`, read the hosts at the first poll, even if Redis has counted no change."""
        self.hot_max: Mapping[str, int] = {}
        self.given_up: frozenset[str] = frozenset()
        self._changes = 0
        self._changes_read = -1 if may_be_some else 0
        self._read_ms = 0  # monotonic

    @property
    def are_awaited(self) -> bool:
        return len(self.hot_max) > len(self.given_up)

    def record_changes(self, changes: int) -> None:
        self._changes = changes

    def should_poll(self, now_ms: int) -> bool:
        """Whether to read the hosts from Redis: there was a change, or the last read was long ago."""
        if self._changes != self._changes_read:
            return True
        return bool(self.hot_max) and now_ms - self._read_ms >= LOOK_MS

    @property
    def change_count(self) -> int:
        return self._changes

    def replace_hosts(self, hot_max: Mapping[str, int]) -> None:
        """Replace the hosts. A maximum of 0 means that the crawl does not wait for a host."""
        self.hot_max = hot_max
        self.given_up = frozenset(host for host, urls in hot_max.items() if not urls)

    def record_poll(self, changes: int, now_ms: int) -> None:
        self._changes_read, self._read_ms = changes, now_ms

    def poll_again(self) -> None:
        """Read the hosts again at the next poll, because Redis or the blacklist has changed."""
        self._changes_read = -1


class HotSet:
    """How many URLs of each host are hot, and how many more may be admitted.

    Attributes:
        urls: the number of all hot URLs.
        extra_divisor: at most 1/`extra_divisor` of `urls_max` may be extra URLs, which exceed their PLD's budget.
    """

    def __init__(
        self,
        urls_max: int,
        away: AwayHosts,
        by_host: Mapping[str, int] | None = None,
        tell: Callable[[], None] = lambda: None,
    ) -> None:
        self._away = away
        self._tell = tell
        self.by_host: Counter[str] = Counter(by_host)
        self.urls = self.by_host.total()
        self.urls_max = max(HOT_URLS_MIN, urls_max)
        self.extra_divisor = 1
        self._next_tries = 0  # hosts that are away and have hot URLs; one URL of each takes no room from others
        self._offered: list[tuple[int, list[str]]] = []

    @property
    def room(self) -> int:
        return self._room_below(self.urls_max)

    @property
    def extra_room(self) -> int:
        return self._room_below(self.urls_max // self.extra_divisor)

    def _room_below(self, urls_max: int) -> int:
        return max(0, min(ADMIT_URLS_MAX, urls_max - self.urls_of_others))

    @property
    def urls_of_others(self) -> int:
        """Hot URLs, without the next tries of hosts that are away: these must not displace other hosts."""
        return self.urls - self._next_tries

    @property
    def hosts(self) -> int:
        """The number of hosts with hot URLs, without those that are away."""
        return len(self.by_host) - self._next_tries

    def are_all(self, fails: Callable[[str], bool]) -> bool:
        """Whether every hot URL belongs to a host that is away, or that `fails` accepts."""
        away = self._away.hot_max
        return all(host in away or fails(host) for host in self.by_host)

    def count_next_tries(self) -> None:
        """Count the hot URLs of hosts that are away, after a step or when these hosts change. May run in a thread."""
        self._next_tries = sum(host in self.by_host for host in self._away.hot_max)

    def set_extra_limit(self, divisor: int) -> None:
        self.extra_divisor = divisor

    def record_offered(self, batch: AdmitBatch, admitted: int) -> None:
        """Count the URLs of a committed batch before it is sent; `admitted` is the last batch Redis has confirmed."""
        hosts = [url.host for url in batch.urls]
        self.by_host.update(hosts)
        self.urls += len(hosts)
        self._offered = [offer for offer in self._offered if offer[0] > admitted]
        self._offered.append((batch.number, hosts))

    def record_ended(self, host: str) -> None:
        count = self.by_host.pop(host, 0)
        self.urls -= count > 0
        if count > 1:
            self.by_host[host] = count - 1
        self._tell()

    def record_parked(self, host: str, urls: int) -> None:
        """Subtract URLs of the host that were moved from its back queue to the inbox."""
        self.by_host[host] -= urls
        if not self.by_host[host]:
            del self.by_host[host]
        self.urls -= urls
        self._tell()

    def restart_count(self, reply: ReconcileReply, taken: Iterable[str]) -> None:
        """Start a new count after a comparison with Redis; `taken` is the host of each URL that the node holds."""
        hot = Counter(taken)
        hot.update(reply.queued)
        for number, hosts in self._offered:
            if number > reply.admitted:
                hot.update(hosts)
        self.by_host, self.urls = hot, hot.total()


def admit_call(
    keys: PartitionKeys,
    identity: Identity,
    batch: AdmitBatch,
    connections: int,
    ended: Collection[int] = (),
    head_start_ms: int = 0,
) -> scripts.Call[bool]:
    """Return the call that admits a batch without the URLs numbered in `ended`; of a batch of keys, only its number."""
    rows = [
        (url.host, order_of(url.priority, seq), pack_member(seq, url))
        for seq, url in enumerate(batch.urls if batch.has_text else (), batch.first_seq)
        if seq not in ended
    ]
    packed = pack_keys(url.key for url in batch.urls)
    chosen = batch.first_seq + len(batch.urls)
    left_out = sum(batch.first_seq <= seq < chosen for seq in ended)
    return scripts.admit_urls(
        keys,
        identity,
        batch.number,
        packed,
        connections,
        rows,
        chosen=chosen,
        left_out=left_out,
        head_start_ms=head_start_ms,
    )


def pack_keys(keys: Iterable[int]) -> bytes:
    values = list(keys)
    return struct.pack(f"<{len(values)}Q", *values)


def unpack_keys(data: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(data) // 8}Q", data))


class AdmitBatches:
    def __init__(
        self, keys: PartitionKeys, committed: CommittedFiles, hot: HotSet, connections: int, head_start_ms: int
    ) -> None:
        self._keys = keys
        self._committed = committed
        self._hot = hot
        self._connections = connections
        self.head_start_ms = head_start_ms
        self.confirmed = committed.manifest.batch_number

    @property
    def are_pending(self) -> bool:
        return self.confirmed < self._committed.manifest.batch_number

    def send(self, identity: Identity, batch: AdmitBatch) -> scripts.Call[bool]:
        self._hot.record_offered(batch, self.confirmed)
        return self._call(identity, batch)

    def send_again(self, identity: Identity) -> list[scripts.Call[bool]]:
        batches = self._committed.batches(self.confirmed)
        return [self._call(identity, batch) for batch in batches]

    def _call(self, identity: Identity, batch: AdmitBatch) -> scripts.Call[bool]:
        return admit_call(self._keys, identity, batch, self._connections, head_start_ms=self.head_start_ms)

    def record_confirmed(self) -> None:
        self.confirmed = self._committed.manifest.batch_number
