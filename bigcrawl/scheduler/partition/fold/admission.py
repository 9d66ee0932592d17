"""Chooses the waiting URLs that become hot in a step (steps 6 and 7 of a URL's life).

Three sources are read until `room` is used up, 2 and 3 again while they admit any:

    1  parked hosts that run low: up to `host_hot_low` hot URLs each, so that none of them falls idle
    2  the front queues, by the selector, up to `host_hot_low` each; other URLs, and those of hosts with
       parked URLs, are parked
    3  parked hosts: up to `host_hot_max`, so that room is used even when few hosts wait

2 comes before 3 and stops lower. Otherwise a few large hosts could hold the hot set while thousands of others wait
behind them (PolyBot §3.5 refills when ready hosts are few, not URLs). 2 also stops when the step has parked more than
twice as many URLs as it admitted, plus a constant. If hosts rest for long, 3 comes only after the front queues. At
`parked_hosts_max`, a front queue waits at the first URL that would need another parked host. If a feature says how many
hosts may be hot at once, 2 reads urgent URLs first, and others only while fewer are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bigcrawl.scheduler.queues.front_queues import BIAS, LEVELS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bigcrawl.scheduler.partition.fold.feature import Feature
    from bigcrawl.scheduler.partition.fold.state import PartitionState
    from bigcrawl.scheduler.records.queued_url import QueuedUrl


# 2 may park this many URLs without admitting any, or more if hosts rest for long, to find other hosts.
_PARKED_FREE = 64
_PARKED_FREE_AT_REST = 256
_PARKED_PER_ADMITTED = 2
# A batch is one message to Redis, which refuses 512 MB. This bounds batches of large requests.
_BYTES_MAX = 16 << 20
# Blacklisted queued URLs that one step withholds; about 50 ms.
_WITHHELD_MAX = 20_000


@dataclass(frozen=True, slots=True)
class PartitionLimits:
    """The bounds of a partition's hot set, and the features of its steps.

    Attributes:
        host_hot_max: URLs of one host that may be hot, including taken ones.
        host_hot_low: a parked host with fewer hot URLs is refilled first; 0 means an eighth of the maximum.
        parked_hosts_max: how many hosts may be parked; each costs about 100 bytes of memory and of manifest.
    """

    host_hot_max: int = 64
    host_hot_low: int = 0
    parked_hosts_max: int = 4096
    priority_bias: float = BIAS
    front_queues: int = LEVELS
    features: tuple[Feature, ...] = ()

    @property
    def host_hot_low_now(self) -> int:
        return min(self.host_hot_low or self._low_at_most, self.host_hot_max)

    @property
    def has_low_share(self) -> bool:
        return 0 < self.host_hot_low < self._low_at_most

    @property
    def _low_at_most(self) -> int:
        return max(1, self.host_hot_max // 8)


class Admission:
    """Chooses the URLs of one step, from the queues of a fork of the state."""

    def __init__(
        self,
        state: PartitionState,
        refill: Callable[[], bool],
        hot: Mapping[str, int],
        limits: PartitionLimits,
        away: Mapping[str, int] | None = None,
        withholds: Callable[[QueuedUrl], bool] | None = None,
    ) -> None:
        self._away = away or {}
        self._withholds = withholds
        self._withheld = 0
        self._turns = state.turns
        self._refill = refill
        self._parked = state.parked
        self._already = state.already
        self._hot = hot
        self._limits = limits
        self._low = limits.host_hot_low_now
        self._chosen: list[QueuedUrl] = []
        self._chosen_of: dict[str, int] = {}
        self._chosen_bytes = 0
        self._newly_parked = 0
        self._hosts_at_once = max((feature.hosts_at_once for feature in limits.features), default=0)
        self._hosts = len(self._hot.keys() - self._away.keys()) if self._hosts_at_once else 0

    def choose(self, room: int, extra_room: int) -> list[QueuedUrl]:
        self._refill_parked(room, self._low)
        before = -1
        while before < len(self._chosen) and self._room_left(room) > 0:
            before = len(self._chosen)
            self._read_front(room, extra_room)
            # If hosts rest long, more hosts are worth more than further URLs of the same ones.
            may_have_more_hosts = not self._may_park() and self._limits.has_low_share
            self._refill_parked(room, self._low if may_have_more_hosts else self._limits.host_hot_max)
        return self._chosen

    def _room_left(self, room: int) -> int:
        return room - len(self._chosen) if self._chosen_bytes < _BYTES_MAX else 0

    def _host_room(self, host: str, bound: int) -> int:
        if self._away and host in self._away:
            bound = min(bound, self._away[host])
        return bound - self._hot.get(host, 0) - self._chosen_of.get(host, 0)

    def _refill_parked(self, room: int, bound: int) -> None:
        while self._room_left(room) > 0 and self._withheld < _WITHHELD_MAX:
            hosts = [host for host in self._parked.hosts if self._host_room(host, bound) > 0]
            if not hosts:
                return
            share = max(1, self._room_left(room) // len(hosts))
            for host in hosts:
                left = self._room_left(room)
                if left <= 0:
                    return
                for url in self._parked.take(host, min(share, left, self._host_room(host, bound))):
                    self._admit_url(url)

    def _read_front(self, room: int, extra_room: int) -> None:
        parked, chosen = self._parked, self._chosen
        front = self._turns.front
        while self._room_left(room) > 0 and self._may_park() and self._withheld < _WITHHELD_MAX:
            if len(chosen) >= extra_room and front.has_only_extra:
                return  # before a level is chosen, which would cost it a turn
            level = front.choose_level(urgent_only=True) if self._hosts_at_once else None
            if level is None:
                if self._hosts_at_once and self._hosts >= self._hosts_at_once:
                    return
                level = front.choose_level()
            if level is None:
                if not self._refill():
                    return
                front = self._turns.front
                continue
            queue = front.queues[level]
            if self._withholds is not None and self._withholds(queue.peek()):
                self._withhold_url(queue.pop())
                continue
            host = queue.peek().host
            waits = host in parked
            no_more_hosts = parked.host_count >= self._limits.parked_hosts_max
            if not waits and self._host_room(host, self._limits.host_hot_max if no_more_hosts else self._low) > 0:
                self._admit_url(queue.pop())
            elif not waits and no_more_hosts:
                return
            else:
                parked.append(queue.pop())
                self._newly_parked += 1

    def _may_park(self) -> bool:
        free = _PARKED_FREE_AT_REST if self._limits.has_low_share else _PARKED_FREE
        return self._newly_parked <= free + _PARKED_PER_ADMITTED * len(self._chosen)

    def _withhold_url(self, url: QueuedUrl) -> None:
        self._withheld += 1
        if not self._skip_if_admitted(url):
            self._turns.withhold([url], reread=False)

    def _admit_url(self, url: QueuedUrl) -> None:
        if self._withholds is not None and self._withholds(url):
            self._withhold_url(url)
            return
        if self._skip_if_admitted(url):
            return
        if self._hosts_at_once and url.host not in self._chosen_of and url.host not in self._hot:
            self._hosts += 1
        self._chosen.append(url)
        self._chosen_bytes += len(url.body)
        self._chosen_of[url.host] = self._chosen_of.get(url.host, 0) + 1

    def _skip_if_admitted(self, url: QueuedUrl) -> bool:
        """Whether to skip a URL that Redis admitted without this manifest's knowledge; each key is skipped once."""
        if url.key not in self._already:
            return False
        self._already[url.key] -= 1
        if not self._already[url.key]:
            del self._already[url.key]
        return True
