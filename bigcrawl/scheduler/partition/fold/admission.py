"""Which waiting URLs become hot (steps 6 and 7): the choice that a step makes.

There are three sources. They are read until `room` is used up, 2 and 3 again while they admit anything:

    1  parked hosts that run low: up to `host_hot_low` hot URLs each, so that none of them falls idle
    2  the front queues, by the selector, up to `host_hot_low` each; a URL beyond that, or of a host with
       parked URLs, is parked; when they are empty, the next turn's (`bigcrawl.scheduler.queues.turns`)
    3  parked hosts: up to `host_hot_max`, so that room is used even when few hosts wait; if hosts rest for long
       (`bigcrawl.scheduler.owner.hot.hot_share`), only after the front queues, which may have more hosts

2 comes before 3 and stops lower. Otherwise a few large hosts could hold the hot set while thousands of others wait
behind them (PolyBot §3.5 refills when ready hosts are few, not URLs).

Bounds. 2 stops when the step has parked more than twice what it admitted plus 64, or plus 256 if hosts rest for long. A
URL is parked at most once, so a step rewrites no more than that, and up to 20,000 URLs that were blacklisted meanwhile.
2 is only reached when every parked host has at least `host_hot_low` hot URLs. So there are no more parked hosts than
the hot set has such shares, and never more than `parked_hosts_max`. At that number a front queue waits at the first URL
that would need another parked host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bigcrawl.scheduler.budgets.mirrors import NO_MIRRORS, MirrorRules
from bigcrawl.scheduler.budgets.traps import NO_TRAPS, TrapRules
from bigcrawl.scheduler.queues.front_queues import BIAS

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Mapping

    from bigcrawl.scheduler.queues.parked_queues import ParkedQueues
    from bigcrawl.scheduler.queues.turns import Turns
    from bigcrawl.scheduler.records.queued_url import QueuedUrl


# 2 may park this many URLs without admitting any before it stops. If hosts rest for long, finding more hosts behind
# those URLs is worth 5 ms.
_PARKED_FREE = 64
_PARKED_FREE_AT_REST = 256
_PARKED_PER_ADMITTED = 2
# A batch is one message to Redis, which refuses 512 MB. This bounds batches of large requests.
_BYTES_MAX = 16 << 20
# Queued URLs that one step withholds because they are blacklisted now; about 50 ms.
_WITHHELD_MAX = 20_000


@dataclass(frozen=True, slots=True)
class PartitionLimits:
    """The bounds of a partition's hot set, and the parameters of priorities and traps.

    Attributes:
        host_hot_max: how many URLs of one host may be hot at a time, including taken ones.
        host_hot_low: a parked host with fewer hot URLs is refilled first; with more, other hosts come first. 0 means an
            eighth of the maximum, at least 1.
        parked_hosts_max: how many hosts may have parked URLs. Each costs about 100 bytes of memory and of manifest.
        traps: which PLDs are caught as traps, and how far that lowers their budgets.
        mirrors: which PLDs are mirrors, likewise.
        priority_bias: how many times as many URLs a priority level gets as the level below it.
    """

    host_hot_max: int = 64
    host_hot_low: int = 0
    parked_hosts_max: int = 4096
    traps: TrapRules = NO_TRAPS
    mirrors: MirrorRules = NO_MIRRORS
    priority_bias: int = BIAS

    @property
    def low(self) -> int:
        """`host_hot_low`, or its default."""
        return min(self.host_hot_low or self._low_at_most, self.host_hot_max)

    @property
    def has_low_share(self) -> bool:
        """Whether `host_hot_low` was lowered because hosts rest for long."""
        return 0 < self.host_hot_low < self._low_at_most

    @property
    def _low_at_most(self) -> int:
        return max(1, self.host_hot_max // 8)


class Admission:
    """The choice of one step. It takes URLs from the queues that it is given.

    `refill` is called when the front queues are empty, and returns whether it filled them. `away` has the hosts that
    are snoozed or retired, with the number of hot URLs that each may have. Further URLs of these hosts are parked.
    """

    def __init__(
        self,
        turns: Turns,
        refill: Callable[[], bool],
        parked: ParkedQueues,
        already: Counter[int],
        hot: Mapping[str, int],
        limits: PartitionLimits,
        away: Mapping[str, int] | None = None,
        withholds: Callable[[QueuedUrl], bool] | None = None,
    ) -> None:
        self._away = away or {}
        self._withholds = withholds
        self._withheld = 0
        self._turns = turns
        self._refill = refill
        self._parked = parked
        self._already = already
        self._hot = hot
        self._limits = limits
        self._low = limits.low
        self._chosen: list[QueuedUrl] = []
        self._chosen_of: dict[str, int] = {}
        self._chosen_bytes = 0
        self._newly_parked = 0

    def __repr__(self) -> str:
        return f"<Admission chosen={len(self._chosen)}>"

    def choose(self, room: int, extra_room: int) -> list[QueuedUrl]:
        """Take up to `room` URLs off the queues, in the order of their admission.

        Extra URLs, which are beyond their PLD's budget, are only taken while fewer than `extra_room` URLs are chosen.
        """
        self._refill_parked(room, self._low)
        before = -1
        while before < len(self._chosen) and self._left(room) > 0:
            before = len(self._chosen)
            self._read_front(room, extra_room)
            # If hosts rest long, more hosts are worth more than further URLs of the same hosts.
            may_have_more_hosts = not self._may_park() and self._limits.has_low_share
            self._refill_parked(room, self._low if may_have_more_hosts else self._limits.host_hot_max)
        return self._chosen

    def _left(self, room: int) -> int:
        """How many more URLs may be chosen."""
        return room - len(self._chosen) if self._chosen_bytes < _BYTES_MAX else 0

    def _host_room(self, host: str, bound: int) -> int:
        if self._away and host in self._away:
            bound = min(bound, self._away[host])
        return bound - self._hot.get(host, 0) - self._chosen_of.get(host, 0)

    def _refill_parked(self, room: int, bound: int) -> None:
        """Fill parked hosts up to `bound` hot URLs, in turns of equal shares."""
        while self._left(room) > 0 and self._withheld < _WITHHELD_MAX:
            hosts = [host for host in self._parked.hosts if self._host_room(host, bound) > 0]
            if not hosts:
                return
            share = max(1, self._left(room) // len(hosts))
            for host in hosts:
                left = self._left(room)
                if left <= 0:
                    return
                for url in self._parked.take(host, min(share, left, self._host_room(host, bound))):
                    self._admit(url)

    def _read_front(self, room: int, extra_room: int) -> None:
        parked, chosen = self._parked, self._chosen
        front = self._turns.front
        while self._left(room) > 0 and self._may_park() and self._withheld < _WITHHELD_MAX:
            if len(chosen) >= extra_room and front.has_only_extra:
                return  # before a level is chosen: that is a turn of it
            level = front.choose_level()
            if level is None:
                if not self._refill():
                    return
                front = self._turns.front
                continue
            queue = front.queues[level]
            if self._withholds is not None and self._withholds(queue.peek()):
                self._withhold(queue.pop())
                continue
            host = queue.peek().host
            waits = host in parked
            no_more_hosts = parked.host_count >= self._limits.parked_hosts_max
            if not waits and self._host_room(host, self._limits.host_hot_max if no_more_hosts else self._low) > 0:
                self._admit(queue.pop())
            elif not waits and no_more_hosts:
                return
            else:
                parked.append(queue.pop())
                self._newly_parked += 1

    def _may_park(self) -> bool:
        free = _PARKED_FREE_AT_REST if self._limits.has_low_share else _PARKED_FREE
        return self._newly_parked <= free + _PARKED_PER_ADMITTED * len(self._chosen)

    def _withhold(self, url: QueuedUrl) -> None:
        """Let a URL that was blacklisted after it was queued wait with those over budget."""
        self._withheld += 1
        if not self._skip_if_admitted(url):
            self._turns.withhold([url], reread=False)

    def _admit(self, url: QueuedUrl) -> None:
        if self._withholds is not None and self._withholds(url):
            self._withhold(url)
            return
        if self._skip_if_admitted(url):
            return
        self._chosen.append(url)
        self._chosen_bytes += len(url.body)
        self._chosen_of[url.host] = self._chosen_of.get(url.host, 0) + 1

    def _skip_if_admitted(self, url: QueuedUrl) -> bool:
        """Whether to skip a URL that Redis has admitted beyond the manifest. Each such key is skipped only once."""
        if url.key not in self._already:
            return False
        self._already[url.key] -= 1
        if not self._already[url.key]:
            del self._already[url.key]
        return True
