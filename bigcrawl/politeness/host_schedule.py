"""Decides when each host, and each server, may be asked again, in a process without a frontier.

    state     entered when                                 left when
    ready     the host is unknown, or its rest is over     a fetch starts
    busy      it has its maximum of connections            a fetch ends
    resting   a fetch ended, or a rest was requested       the time has come
    retired   `failures_max` fetches in a row failed       an answer arrives after all

A host is forgotten only when its rest is over and other hosts need the room.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from bigcrawl.politeness.backoff_policy import BackoffPolicy, DelayPolicy, host_delay_ms, retry_backoff_ms

HOSTS_KEPT = 100_000
"""Hosts remembered, about 250 bytes each; more only while more rest."""


class ServerGaps:
    """Grants start times to fetches, `gap_ms` apart for each server, by the caller's clock; forgets old servers."""

    def __init__(self, gap_ms: int) -> None:
        self._gap_ms = gap_ms
        self._free_ms: OrderedDict[str, int] = OrderedDict()

    def __repr__(self) -> str:
        return f"ServerGaps({len(self._free_ms)} servers)"

    def __len__(self) -> int:
        return len(self._free_ms)

    def grant(self, server: str, now_ms: int) -> int:
        """Return when a fetch from the server may start, `now_ms` or later. The next fetch gets a later time."""
        start_ms = max(now_ms, self._free_ms.pop(server, now_ms))
        self._free_ms[server] = start_ms + self._gap_ms
        self._forget_expired(now_ms)
        return start_ms

    def _forget_expired(self, now_ms: int) -> None:
        for _ in range(2):
            server, free_ms = next(iter(self._free_ms.items()))
            if free_ms > now_ms:
                self._free_ms.move_to_end(server)
                return
            del self._free_ms[server]
            if not self._free_ms:
                return


@dataclass(slots=True)
class _HostState:
    due_ms: int = 0
    running: int = 0
    failures: int = 0
    crawl_delay_ms: int | None = None
    ended_ms: int | None = None


class HostSchedule:
    """The state of each host of one process. All times are milliseconds of one monotonic clock.

    A host's delay runs from the end of a fetch to the start of the next; with more than one connection, from start to
    start. A rest is never shortened.
    """

    def __init__(
        self,
        policy: DelayPolicy,
        *,
        connections: int = 1,
        backoff: BackoffPolicy | None = None,
        hosts_kept: int = HOSTS_KEPT,
    ) -> None:
        """Allow at most `connections` fetches of a host. A `failures_max` of 0 in `backoff` retires no host."""
        self._policy = policy
        self._connections = connections
        self._backoff = backoff or BackoffPolicy()
        self._hosts_kept = hosts_kept
        self._hosts: OrderedDict[str, _HostState] = OrderedDict()

    def __repr__(self) -> str:
        return f"HostSchedule({len(self._hosts)} hosts)"

    def __len__(self) -> int:
        return len(self._hosts)

    def _check(self) -> None:
        for host, kept in self._hosts.items():
            assert 0 <= kept.running <= self._connections, host
            assert kept.failures >= 0, host

    def due_ms(self, host: str) -> int | None:
        """Return when a request to the host may start; 0 if it is unknown, None while it is busy."""
        kept = self._hosts.get(host)
        if kept is None:
            return 0
        return None if kept.running >= self._connections else kept.due_ms

    def is_retired(self, host: str) -> bool:
        """Return whether the host failed so often in a row that it gets no more requests."""
        kept = self._hosts.get(host)
        return kept is not None and 0 < self._backoff.failures_max <= kept.failures

    def record_start(self, host: str, now_ms: int) -> None:
        """Record the start of a fetch. The host must be due."""
        kept = self._host_state(host)
        assert kept.running < self._connections, f"{host} is busy"
        kept.running += 1
        if self._connections > 1:
            self._delay_until(kept, now_ms + self._delay_ms(kept, 0))
        self._drop_unused(now_ms)

    def record_end(self, host: str, now_ms: int, download_ms: int = 0) -> None:
        """Record the end of a fetch, whatever its outcome. The host rests."""
        kept = self._host_state(host)
        kept.running = max(0, kept.running - 1)
        kept.ended_ms = now_ms
        if self._connections == 1:
            self._delay_until(kept, now_ms + self._delay_ms(kept, download_ms))

    def ask_delay(self, host: str, crawl_delay_ms: int | None) -> None:
        """Set the host's crawl delay from robots.txt, or None. It also extends the current rest."""
        kept = self._hosts.get(host)
        if (kept.crawl_delay_ms if kept else None) == crawl_delay_ms:
            return
        kept = self._host_state(host)
        kept.crawl_delay_ms = crawl_delay_ms
        if kept.ended_ms is not None:
            self._delay_until(kept, kept.ended_ms + self._delay_ms(kept, 0))

    def rest_until(self, host: str, due_ms: int) -> None:
        self._delay_until(self._host_state(host), due_ms)

    def record_failure(self, host: str, now_ms: int, jitter: float, retry_after_ms: int = 0) -> int:
        """Record a failure or a request to wait (`retry_after_ms`); return the host's rest from now on, in ms."""
        kept = self._host_state(host)
        kept.failures += 1
        first_ms = retry_after_ms or self._backoff.first_ms
        longest_ms = max(self._backoff.longest_ms, retry_after_ms)
        wait_ms = retry_backoff_ms(kept.failures, jitter, first_ms=first_ms, longest_ms=longest_ms)
        self._delay_until(kept, now_ms + wait_ms)
        return kept.due_ms - now_ms

    def record_answer(self, host: str) -> None:
        kept = self._hosts.get(host)
        if kept is not None:
            kept.failures = 0

    def _delay_ms(self, kept: _HostState, download_ms: int) -> int:
        return host_delay_ms(self._policy, crawl_delay_ms=kept.crawl_delay_ms, download_ms=download_ms)

    @staticmethod
    def _delay_until(kept: _HostState, due_ms: int) -> None:
        kept.due_ms = max(kept.due_ms, due_ms)

    def _host_state(self, host: str) -> _HostState:
        kept = self._hosts.get(host)
        if kept is None:
            kept = self._hosts[host] = _HostState()
        else:
            self._hosts.move_to_end(host)
        return kept

    def _drop_unused(self, now_ms: int) -> None:
        """Drop up to two of the least recently used hosts if there are too many, except those that rest."""
        for _ in range(2):
            if len(self._hosts) <= self._hosts_kept:
                return
            host, kept = next(iter(self._hosts.items()))
            if kept.running or kept.due_ms > now_ms:
                self._hosts.move_to_end(host)
            else:
                del self._hosts[host]
