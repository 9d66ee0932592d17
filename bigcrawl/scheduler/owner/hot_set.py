"""A partition's part of the hot set (step 7): its URLs in Redis, taken ones included, as its owner counts them.

The owner counts what it admits and what has ended. After a comparison with Redis the count begins anew. Hosts that are
away, snoozed for a minute or more or retired, have a URL there at most: `parking` sees to it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bigcrawl.scheduler.partition.partition import ADMIT_URLS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from bigcrawl.redisdb.scripts import Reconciled
    from bigcrawl.scheduler.partition.admit_batch import AdmitBatch

HOT_URLS_MIN = 64
LOOK_MS = 60_000  # between two looks at hosts of which nothing is heard


class AwayHosts:
    """How many URLs of each may be hot; `exchange_urls` decides who they are, and counts its changes in Redis.

    Attributes:
        hot_max: hosts that are away; so many of their URLs may be hot.
        given_up: those of them that the crawl does not wait for, which may have none.
    """

    def __init__(self) -> None:
        self.hot_max: Mapping[str, int] = {}
        self.given_up: frozenset[str] = frozenset()
        self._changes = 0  # when Redis was last asked how many there were
        self._changes_read = -1  # when the hosts were last read
        self._read_ms = 0  # monotonic

    def __repr__(self) -> str:
        return f"<AwayHosts {len(self.hot_max)} given_up={len(self.given_up)}>"

    @property
    def are_awaited(self) -> bool:
        """Whether the crawl waits for any of them."""
        return len(self.hot_max) > len(self.given_up)

    def note_changes(self, changes: int) -> None:
        """Redis has counted so many changes."""
        self._changes = changes

    def wants_look(self, now_ms: int) -> bool:
        """Whether it is time to read them: something has changed, or nothing was heard for long."""
        if self._changes != self._changes_read:
            return True
        return bool(self.hot_max) and now_ms - self._read_ms >= LOOK_MS

    @property
    def changes(self) -> int:
        """How many changes are known, to be told to `note_look` when all that follows from them is done."""
        return self._changes

    def note(self, hot_max: Mapping[str, int]) -> None:
        """These are the hosts, and so many URLs of each may be hot: 0 where the crawl does not wait for it."""
        self.hot_max = hot_max
        self.given_up = frozenset(host for host, urls in hot_max.items() if not urls)

    def note_look(self, changes: int, now_ms: int) -> None:
        """All is done that follows from so many changes."""
        self._changes_read, self._read_ms = changes, now_ms

    def look_again(self) -> None:
        """Redis, or what is waited for, is not what it was: read them at the next look."""
        self._changes_read = -1


class HotSet:
    """How many URLs of which host are hot, and how many more may be.

    Attributes:
        by_host: hot URLs of each host that has any.
        urls: all of them.
        urls_max: how many there should be.
        extra_divisor: one of so many may be extra, that is, beyond its PLD's budget.
    """

    def __init__(self, urls_max: int, away: AwayHosts, by_host: Mapping[str, int] | None = None) -> None:
        self._away = away
        self.by_host: Counter[str] = Counter(by_host)
        self.urls = self.by_host.total()
        self.urls_max = max(HOT_URLS_MIN, urls_max)
        self.extra_divisor = 1
        self._next_tries = 0  # hot URLs of hosts that are away, one of each: they take no room from others
        self._offered: list[tuple[int, list[str]]] = []  # batches that Redis may not have: number, hosts of its URLs

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
        """Hot URLs, but for the next tries of hosts that are away: as many of those as there may be stop no other."""
        return self.urls - self._next_tries

    def are_all(self, fails: Callable[[str], bool]) -> bool:
        """Whether all are URLs of hosts that are away, or of which `fails` is true."""
        away = self._away.hot_max
        return all(host in away or fails(host) for host in self.by_host)

    def count_next_tries(self) -> None:
        """Other hosts are away, or a step has ended; may be called in a worker thread."""
        self._next_tries = sum(host in self.by_host for host in self._away.hot_max)

    def limit_extra(self, divisor: int) -> None:
        """One of so many hot URLs may be extra from now on."""
        self.extra_divisor = divisor

    def note_offered(self, batch: AdmitBatch, admitted: int) -> None:
        """A batch is committed, and Redis is told of it.

        Args:
            batch: its URLs are hot.
            admitted: the last batch that Redis has confirmed.
        """
        hosts = [url.host for url in batch.urls]
        self.by_host.update(hosts)
        self.urls += len(hosts)
        self._offered = [offer for offer in self._offered if offer[0] > admitted]
        self._offered.append((batch.number, hosts))

    def note_ended(self, host: str) -> None:
        """A URL of the host is acknowledged and no longer in Redis."""
        count = self.by_host.pop(host, 0)
        self.urls -= count > 0
        if count > 1:
            self.by_host[host] = count - 1

    def note_parked(self, host: str, urls: int) -> None:
        """So many URLs of the host were moved from its back queue to the inbox."""
        self.by_host[host] -= urls
        if not self.by_host[host]:
            del self.by_host[host]
        self.urls -= urls

    def settle(self, reply: Reconciled, taken: Iterable[str]) -> None:
        """Count anew.

        Args:
            reply: what Redis told when both sides were compared.
            taken: the hosts of the URLs that the node holds.
        """
        hot = Counter(taken)
        hot.update(reply.queued)
        for number, hosts in self._offered:
            if number > reply.admitted:
                hot.update(hosts)
        self.by_host, self.urls = hot, hot.total()
