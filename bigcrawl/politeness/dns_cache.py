"""Caches DNS answers and failures, and asks about each name once at a time.

"No such name" is an answer. If DNS gives none, the question is repeated with back-off. Cancelling one waiter does not
cancel the question for others.
"""

from __future__ import annotations

import asyncio
import socket
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.histogram import Histogram

if TYPE_CHECKING:
    from bigcrawl.clock import Clock

FAILURE_FIRST_MS = 10_000
"""The wait after the first question without an answer; it doubles with each further one."""

FAILURE_LONGEST_MS = 60_000

GRACE_MS = 60_000
"""A connection may use an answer that expired up to this long ago."""


class DnsAnswer(NamedTuple):
    """The addresses of a host (empty if it has none) and their TTL (None if DNS gave none)."""

    addresses: tuple[str, ...]
    ttl_ms: int | None


Resolve = Callable[[str], Awaitable[DnsAnswer | list[str]]]
"""Asks DNS for the addresses of a host. Raises OSError, TimeoutError or DnsError. A list is an answer without TTL."""


class AnswerStore(Protocol):
    """Shares answers with other nodes. Raises nothing."""

    async def get(self, host: str) -> DnsAnswer | None:
        """Return the shared answer for a host, with its remaining TTL; None if there is none."""

    def put(self, host: str, answer: DnsAnswer) -> None:
        """Share an answer soon. An answer without addresses says that the host has none."""


class DnsError(BigcrawlError):
    """A host has no usable address at the moment; ask again after `retry_after_ms`.

    `reason` is `not-found`, `temporary`, `timeout`, `malformed-name` or `failed`.
    """

    def __init__(self, host: str, reason: str, retry_after_ms: int, failures: int = 0) -> None:
        super().__init__(f"{host} has no address: {reason}; not asked again for {retry_after_ms} ms")
        self.host = host
        self.reason = reason
        self.retry_after_ms = retry_after_ms
        self.failures = failures


@dataclass(frozen=True, slots=True)
class _Entry:
    addresses: tuple[str, ...]
    reason: str
    expires_ms: int
    failures: int = 0


class DnsCache:
    """The addresses of hosts, for one event loop. At most `entries_max` answers are cached."""

    def __init__(
        self,
        resolve: Resolve,
        clock: Clock,
        *,
        ttl_ms: int = 600_000,
        ttl_min_ms: int = 0,
        ttl_max_ms: int = 86_400_000,
        negative_ttl_ms: int = 60_000,
        entries_max: int = 100_000,
    ) -> None:
        """Cache answers for their bounded TTL; without a TTL for `ttl_ms`, or if empty for `negative_ttl_ms`."""
        self._resolve = resolve
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._ttl_min_ms = ttl_min_ms
        self._ttl_max_ms = ttl_max_ms
        self._negative_ttl_ms = negative_ttl_ms
        self._entries_max = entries_max
        self.store: AnswerStore | None = None
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._asked: dict[str, asyncio.Task[_Entry]] = {}
        self._since_ms: dict[str, int] = {}
        self.questions = 0
        self.hits = 0
        self.shared_hits = 0
        self.failures: dict[str, int] = {}
        self.times = Histogram()

    def __repr__(self) -> str:
        return f"DnsCache({len(self._entries)} kept, {len(self._asked)} asked, {self.questions} questions)"

    def _check(self) -> None:
        assert len(self._entries) <= self._entries_max, "more answers kept than allowed"
        assert self._since_ms.keys() == self._asked.keys(), "the start of a question is unknown"
        assert not any(task.done() for task in self._asked.values()), "an answered question is under way"
        assert all(bool(entry.addresses) != bool(entry.reason) for entry in self._entries.values())

    def cached_addresses(self, host: str, grace_ms: int = 0) -> list[str] | None:
        """Return cached addresses, or those expired less than `grace_ms` ago, or None. Never waits, never raises."""
        literal = literal_address(host)
        if literal is not None:
            return [literal]
        entry = self._cached_entry(host, grace_ms)
        self.hits += entry is not None and not grace_ms  # a connection asks with grace, for what was counted before
        return list(entry.addresses) if entry is not None and entry.addresses else None

    def has_answer(self, host: str) -> bool:
        """Return whether a look-up would return at once, even if only with a failure."""
        return self._cached_entry(host) is not None or literal_address(host) is not None

    def asking_ms(self, host: str) -> int | None:
        since_ms = self._since_ms.get(host)
        return None if since_ms is None else self._clock.monotonic_ms() - since_ms

    def use_store(self, store: AnswerStore) -> None:
        """Ask a store before the resolver, and share the resolver's answers there."""
        self.store = store

    def drop_store(self, store: AnswerStore) -> None:
        if self.store is store:
            self.store = None

    @property
    def under_way(self) -> int:
        return len(self._asked)

    async def lookup(self, host: str) -> list[str]:
        """Return the addresses of a host, at least one, in the resolver's order; raise DnsError if there is none."""
        literal = literal_address(host)
        if literal is not None:
            return [literal]
        entry = self._cached_entry(host)
        if entry is None:
            task = self._asked.get(host)
            if task is None:
                task = asyncio.get_running_loop().create_task(self._resolve_and_cache(host), name=f"dns {host}")
                self._asked[host] = task
                self._since_ms[host] = self._clock.monotonic_ms()
            entry = await asyncio.shield(task)
        else:
            self.hits += 1
        if entry.reason:
            left_ms = max(entry.expires_ms - self._clock.monotonic_ms(), 1)
            raise DnsError(host, entry.reason, left_ms, entry.failures)
        return list(entry.addresses)

    async def close(self) -> None:
        tasks = list(self._asked.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._since_ms.clear()
        self._asked.clear()  # a task cancelled before it began could not remove itself

    def _cached_entry(self, host: str, grace_ms: int = 0) -> _Entry | None:
        entry = self._entries.get(host)
        # An expired entry is kept, because it counts the failures in a row.
        if entry is None or entry.expires_ms + grace_ms <= self._clock.monotonic_ms():
            return None
        self._entries.move_to_end(host)
        return entry

    async def _resolve_and_cache(self, host: str) -> _Entry:
        """Ask the resolver and cache the result. Never raises, but can be cancelled."""
        try:
            entry = await self._shared_or_resolved(host)
        finally:
            del self._asked[host], self._since_ms[host]
        self._entries[host] = entry
        self._entries.move_to_end(host)
        while len(self._entries) > self._entries_max:
            self._entries.popitem(last=False)
        return entry

    async def _shared_or_resolved(self, host: str) -> _Entry:
        if _is_malformed(host):
            return self._new_entry(DnsAnswer((), None), "malformed-name")
        shared = await self.store.get(host) if self.store is not None else None
        if shared is not None:
            self.shared_hits += 1
            return self._new_entry(shared, "" if shared.addresses else "not-found")
        self.questions += 1
        since_ms = self._clock.monotonic_ms()
        entry = await self._ask_resolver(host)
        self.times.count_ms(self._clock.monotonic_ms() - since_ms)
        if entry.reason:
            self.failures[entry.reason] = self.failures.get(entry.reason, 0) + 1
        return entry

    async def _ask_resolver(self, host: str) -> _Entry:
        try:
            found = await self._resolve(host)
        except DnsError as error:
            return self._failure_entry(host, error.reason, error.retry_after_ms)
        except Exception as error:  # noqa: BLE001 - any error of a resolver affects only this host
            reason = _failure_reason(error)
            if reason != "not-found":
                return self._failure_entry(host, reason)
            found = DnsAnswer((), None)
        answer = found if isinstance(found, DnsAnswer) else DnsAnswer(tuple(found), None)
        entry = self._new_entry(answer, "" if answer.addresses else "not-found")
        if self.store is not None:
            self.store.put(host, DnsAnswer(answer.addresses, entry.expires_ms - self._clock.monotonic_ms()))
        return entry

    def _new_entry(self, answer: DnsAnswer, reason: str) -> _Entry:
        ttl_ms = answer.ttl_ms
        if ttl_ms is None:
            ttl_ms = self._negative_ttl_ms if reason else self._ttl_ms
        kept_ms = ttl_ms if reason else min(max(ttl_ms, self._ttl_min_ms), self._ttl_max_ms)
        return _Entry(answer.addresses, reason, self._clock.monotonic_ms() + kept_ms)

    def _failure_entry(self, host: str, reason: str, retry_after_ms: int = 0) -> _Entry:
        """Return the entry for a failure. Back-offs differ by host, so that not all hosts are retried at once."""
        last = self._entries.get(host)
        failures = last.failures + 1 if last is not None else 1
        if retry_after_ms:
            return _Entry((), reason, self._clock.monotonic_ms() + retry_after_ms, failures)
        backoff_ms = min(FAILURE_FIRST_MS << min(failures - 1, 16), FAILURE_LONGEST_MS)
        spread_ms = backoff_ms * (zlib.crc32(host.encode()) & 0xFF) // 1_024
        return _Entry((), reason, self._clock.monotonic_ms() + backoff_ms + spread_ms, failures)


def literal_address(host: str) -> str | None:
    # Names are cheap to recognise: a literal has a colon or a final digit.
    if ":" not in host and not host[-1:].isdigit():
        return None
    return _literal_address(host)


@lru_cache(4_096)
def _literal_address(host: str) -> str | None:
    try:
        return str(ip_address(host))
    except ValueError:
        return None


def _is_malformed(host: str) -> bool:
    labels_fit = all(0 < len(label) <= 63 for label in host.split("."))
    return not labels_fit or len(host) > 253 or not host.isascii() or not host.isprintable()


def _failure_reason(error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        if error.errno in {socket.EAI_NONAME, socket.EAI_NODATA}:
            return "not-found"
        return "temporary" if error.errno == socket.EAI_AGAIN else "failed"
    return "timeout" if isinstance(error, TimeoutError) else "failed"
