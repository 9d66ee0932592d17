"""A partition's share of the hot set (step 7): its URLs in Redis, including taken ones, as its owner counts them.

The owner adds what it admits and subtracts what has ended. After each comparison with Redis it starts a new count.
A host is away when it is snoozed for a minute or more, or retired. It keeps at most one URL in Redis (`parking`).
"""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.scheduler.partition.partition import ADMIT_URLS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from bigcrawl.redisdb.scripts import Reconciled
    from bigcrawl.scheduler.partition.admit_batch import AdmitBatch
    from bigcrawl.scheduler.records.suspicion import Suspicion

HOT_URLS_MIN = 64
LOOK_MS = 60_000  # hosts that are away are read again after this time, even if Redis has counted no change


class InRedis(NamedTuple):
    """A partition's URLs in Redis. None of them is taken.

    Attributes:
        by_host: how many URLs each host has.
        due_in_ms: how soon the first host is due; None if no URL waits.
        suspects: those that may have killed a node, by sequence number.
        may_have_entries: whether anything was ever in the inbox, as far as Redis and the disk knew at the claim.
    """

    by_host: Mapping[str, int]
    due_in_ms: int | None = None
    suspects: Mapping[int, Suspicion] = MappingProxyType({})
    may_have_entries: bool = True


class AwayHosts:
    """Hosts that are away. `exchange_urls` decides which they are, and counts each change in Redis.

    Attributes:
        hot_max: how many URLs of each host may be hot.
        given_up: hosts that the crawl does not wait for. None of their URLs may be hot.
    """

    def __init__(self, *, may_be_some: bool = True) -> None:
        """`may_be_some`: whether the first look finds any, even if Redis has counted no change."""
        self.hot_max: Mapping[str, int] = {}
        self.given_up: frozenset[str] = frozenset()
        self._changes = 0  # when Redis was last asked how many there were
        self._changes_read = -1 if may_be_some else 0  # when the hosts were last read
        self._read_ms = 0  # monotonic

    def __repr__(self) -> str:
        return f"<AwayHosts {len(self.hot_max)} given_up={len(self.given_up)}>"

    @property
    def are_awaited(self) -> bool:
        """Whether the crawl waits for any of them."""
        return len(self.hot_max) > len(self.given_up)

    def note_changes(self, changes: int) -> None:
        """Record the number of changes that Redis has counted."""
        self._changes = changes

    def wants_look(self, now_ms: int) -> bool:
        """Whether to read the hosts from Redis: there was a change, or the last look was long ago."""
        if self._changes != self._changes_read:
            return True
        return bool(self.hot_max) and now_ms - self._read_ms >= LOOK_MS

    @property
    def changes(self) -> int:
        """The number of changes known so far. Pass it to `note_look` when they are dealt with."""
        return self._changes

    def note(self, hot_max: Mapping[str, int]) -> None:
        """Replace the hosts. A maximum of 0 means that the crawl does not wait for the host."""
        self.hot_max = hot_max
        self.given_up = frozenset(host for host, urls in hot_max.items() if not urls)

    def note_look(self, changes: int, now_ms: int) -> None:
        """Record that the changes up to this number are dealt with."""
        self._changes_read, self._read_ms = changes, now_ms

    def look_again(self) -> None:
        """Read the hosts again at the next look, because Redis or the blacklist has changed."""
        self._changes_read = -1


class HotSet:
    """How many URLs of each host are hot, and how many more may be admitted.

    Attributes:
        by_host: the number of hot URLs of each host that has any.
        urls: the number of all hot URLs.
        urls_max: how many URLs may be hot.
        extra_divisor: at most 1/`extra_divisor` of `urls_max` may be extra URLs, which are beyond their PLD's budget.
    """

    def __init__(
        self,
        urls_max: int,
        away: AwayHosts,
        by_host: Mapping[str, int] | None = None,
        tell: Callable[[], None] = lambda: None,
    ) -> None:
        """`tell` is called when there is more room."""
        self._away = away
        self._tell = tell
        self.by_host: Counter[str] = Counter(by_host)
        self.urls = self.by_host.total()
        self.urls_max = max(HOT_URLS_MIN, urls_max)
        self.extra_divisor = 1
        self._next_tries = 0  # hosts that are away and have hot URLs; one URL of each takes no room from others
        self._offered: list[tuple[int, list[str]]] = []  # number and hosts of batches that Redis may not have

    def __repr__(self) -> str:
        return f"<HotSet urls={self.urls} hosts={len(self.by_host)} of {self.urls_max}>"

    @property
    def room(self) -> int:
        """URLs that may be admitted now."""
        return self._room(self.urls_max)

    @property
    def extra_room(self) -> int:
        """URLs that may be admitted now if they are extra."""
        return self._room(self.urls_max // self.extra_divisor)

    def _room(self, urls_max: int) -> int:
        return max(0, min(ADMIT_URLS_MAX, urls_max - self.urls_of_others))

    @property
    def urls_of_others(self) -> int:
        """Hot URLs without the next tries of hosts that are away, which must not keep other hosts out."""
        return self.urls - self._next_tries

    @property
    def hosts(self) -> int:
        """How many hosts have hot URLs, without those that are away."""
        return len(self.by_host) - self._next_tries

    def are_all(self, fails: Callable[[str], bool]) -> bool:
        """Whether every hot URL belongs to a host that is away, or for which `fails` returns true."""
        away = self._away.hot_max
        return all(host in away or fails(host) for host in self.by_host)

    def count_next_tries(self) -> None:
        """Count next tries again, after a step or when other hosts are away. May run in a worker thread."""
        self._next_tries = sum(host in self.by_host for host in self._away.hot_max)

    def limit_extra(self, divisor: int) -> None:
        """Allow 1/`divisor` of the hot set to be extra URLs from now on."""
        self.extra_divisor = divisor

    def note_offered(self, batch: AdmitBatch, admitted: int) -> None:
        """Count the URLs of a committed batch, which is about to be sent to Redis.

        Args:
            batch: the batch.
            admitted: the number of the last batch that Redis has confirmed.
        """
        hosts = [url.host for url in batch.urls]
        self.by_host.update(hosts)
        self.urls += len(hosts)
        self._offered = [offer for offer in self._offered if offer[0] > admitted]
        self._offered.append((batch.number, hosts))

    def note_ended(self, host: str) -> None:
        """Subtract a URL of the host, which is acknowledged and no longer in Redis."""
        count = self.by_host.pop(host, 0)
        self.urls -= count > 0
        if count > 1:
            self.by_host[host] = count - 1
        self._tell()

    def note_parked(self, host: str, urls: int) -> None:
        """Subtract URLs of the host, which were moved from its back queue to the inbox."""
        self.by_host[host] -= urls
        if not self.by_host[host]:
            del self.by_host[host]
        self.urls -= urls
        self._tell()

    def settle(self, reply: Reconciled, taken: Iterable[str]) -> None:
        """Start a new count after a comparison with Redis.

        Args:
            reply: the result of the comparison.
            taken: the host of each URL that the node holds.
        """
        hot = Counter(taken)
        hot.update(reply.queued)
        for number, hosts in self._offered:
            if number > reply.admitted:
                hot.update(hosts)
        self.by_host, self.urls = hot, hot.total()
