"""Names to addresses: one question at a time a name, answers kept, failures kept too.

    lookup -> literal?  -> answered
              kept?     -> answered, or DnsError, until the entry expires
              asked?    -> waits for the question that is under way
              else      -> asks the resolver; the answer or its failure is kept

A failure is the host's, never the node's: DnsError says when asking again makes sense, and the host is
snoozed for so long. A waiter that is cancelled takes nobody's question with it.
"""

from __future__ import annotations

import asyncio
import queue
import socket
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from ipaddress import ip_address
from typing import TYPE_CHECKING

from bigcrawl.exceptions import BigcrawlError

if TYPE_CHECKING:
    from bigcrawl.clock import Clock

Resolve = Callable[[str], Awaitable[list[str]]]
"""Asks for the addresses of a host; raises OSError, TimeoutError or DnsError."""

RESOLVE_TIMEOUT_MS = 10_000
"""Two rounds of a stub resolver's usual five seconds."""

THREADS_MAX = 32
"""Questions under way at a time: enough for 600 names a second at 50 ms each."""


class DnsError(BigcrawlError):
    """A host has no usable address now; ask again after `retry_after_ms`.

    `reason` is `not-found` (no such name, or no address), `temporary`, `timeout`, `malformed-name`
    or `failed`.
    """

    def __init__(self, host: str, reason: str, retry_after_ms: int) -> None:
        super().__init__(f"{host} has no address: {reason}; not asked again for {retry_after_ms} ms")
        self.host = host
        self.reason = reason
        self.retry_after_ms = retry_after_ms


@dataclass(frozen=True, slots=True)
class _Entry:
    addresses: tuple[str, ...]
    reason: str  # empty when there are addresses
    expires_ms: int


class DnsCache:
    """The addresses of hosts, each asked for once while an answer holds; for one event loop.

    Guarantees:
        At most one question a host is under way. At most `entries_max` answers are kept; the one not
        used for the longest goes first.
    """

    def __init__(
        self,
        resolve: Resolve,
        clock: Clock,
        *,
        ttl_ms: int = 600_000,
        negative_ttl_ms: int = 60_000,
        entries_max: int = 100_000,
    ) -> None:
        """Keep answers for `ttl_ms` and failures for `negative_ttl_ms`, in milliseconds of `clock`."""
        self._resolve = resolve
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._negative_ttl_ms = negative_ttl_ms
        self._entries_max = entries_max
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._asked: dict[str, asyncio.Task[_Entry]] = {}
        self.questions = 0
        """How often the resolver was asked."""

    def __repr__(self) -> str:
        return f"DnsCache({len(self._entries)} kept, {len(self._asked)} asked, {self.questions} questions)"

    def _check(self) -> None:
        """Assert the invariants of the class docstring."""
        assert len(self._entries) <= self._entries_max, "more answers kept than allowed"
        assert not any(task.done() for task in self._asked.values()), "an answered question is under way"
        assert all(bool(entry.addresses) != bool(entry.reason) for entry in self._entries.values())

    def peek(self, host: str) -> list[str] | None:
        """Return the addresses that are known without asking, or None; never waits, never raises."""
        literal = _literal(host)
        if literal is not None:
            return [literal]
        entry = self._kept(host)
        return list(entry.addresses) if entry is not None and entry.addresses else None

    async def lookup(self, host: str) -> list[str]:
        """Return the addresses of a host, at least one, in the resolver's order.

        Args:
            host: as `host_of` gives it; an IP literal is its own address.

        Raises:
            DnsError: there are none now; the same answer is given until `retry_after_ms` are over.
        """
        literal = _literal(host)
        if literal is not None:
            return [literal]
        entry = self._kept(host)
        if entry is None:
            task = self._asked.get(host)
            if task is None:
                task = asyncio.get_running_loop().create_task(self._ask(host), name=f"dns {host}")
                self._asked[host] = task
            entry = await asyncio.shield(task)
        if entry.reason:
            raise DnsError(host, entry.reason, max(entry.expires_ms - self._clock.monotonic_ms(), 1))
        return list(entry.addresses)

    async def close(self) -> None:
        """Give up the questions under way; those who wait for them are cancelled."""
        tasks = list(self._asked.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._asked.clear()  # one that was cancelled before it began could not do so itself

    def _kept(self, host: str) -> _Entry | None:
        entry = self._entries.get(host)
        if entry is None:
            return None
        if entry.expires_ms <= self._clock.monotonic_ms():
            del self._entries[host]
            return None
        self._entries.move_to_end(host)
        return entry

    async def _ask(self, host: str) -> _Entry:
        """Ask the resolver and keep what comes of it; never raises, but can be cancelled."""
        try:
            entry = await self._answer(host)
        finally:
            del self._asked[host]
        self._entries[host] = entry
        self._entries.move_to_end(host)
        while len(self._entries) > self._entries_max:
            self._entries.popitem(last=False)
        return entry

    async def _answer(self, host: str) -> _Entry:
        retry_after_ms = self._negative_ttl_ms
        addresses: list[str] = []
        if _is_malformed(host):
            reason = "malformed-name"
        else:
            self.questions += 1
            try:
                addresses = await self._resolve(host)
                reason = "" if addresses else "not-found"
            except DnsError as error:
                reason, retry_after_ms = error.reason, error.retry_after_ms
            except Exception as error:  # noqa: BLE001 - whatever a resolver does, only this host suffers
                reason = _reason_of(error)
        kept_ms = retry_after_ms if reason else self._ttl_ms
        return _Entry(tuple(addresses), reason, self._clock.monotonic_ms() + kept_ms)


def _literal(host: str) -> str | None:
    """Return a host that is an IP address, else None."""
    # Only a host with a colon, or that ends in a digit, can be one: names are told apart cheaply.
    if ":" not in host and not host[-1:].isdigit():
        return None
    return _address(host)


@lru_cache(4_096)
def _address(host: str) -> str | None:
    try:
        return str(ip_address(host))
    except ValueError:
        return None


def _is_malformed(host: str) -> bool:
    """Tell whether DNS has no way to ask for a name (RFC 1035: labels of 1 to 63 bytes, 253 in all)."""
    labels_fit = all(0 < len(label) <= 63 for label in host.split("."))
    return not labels_fit or len(host) > 253 or not host.isascii() or not host.isprintable()


def _reason_of(error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        if error.errno in {socket.EAI_NONAME, socket.EAI_NODATA}:
            return "not-found"
        return "temporary" if error.errno == socket.EAI_AGAIN else "failed"
    return "timeout" if isinstance(error, TimeoutError) else "failed"


def getaddrinfo_resolver(timeout_ms: int = RESOLVE_TIMEOUT_MS, threads_max: int = THREADS_MAX) -> GetaddrinfoResolver:
    """Return a resolver that asks the machine's own (hosts file, resolv.conf)."""
    return GetaddrinfoResolver(timeout_ms, threads_max)


class GetaddrinfoResolver:
    """Asks the machine's resolver in threads of its own.

    Not in the event loop's default pool: there, a few names whose servers are dead would hold all
    threads, everybody else's file work would wait behind them, and the process could not end while one
    of them waits. These threads are daemons, and a question's time runs from when a thread takes it.
    """

    def __init__(self, timeout_ms: int = RESOLVE_TIMEOUT_MS, threads_max: int = THREADS_MAX) -> None:
        self._timeout_s = timeout_ms / 1_000
        self._threads: list[threading.Thread] = []
        self._questions: queue.SimpleQueue[_Question | None] = queue.SimpleQueue()
        self._free = asyncio.Semaphore(threads_max)
        self._busy = 0

    def __repr__(self) -> str:
        return f"GetaddrinfoResolver({self._busy} of {len(self._threads)} threads busy)"

    async def __call__(self, host: str) -> list[str]:
        """Return the addresses of a host, IPv4 and IPv6 in the system's order of preference, each once.

        Raises:
            OSError: as `socket.getaddrinfo` does.
            TimeoutError: no answer in time. The thread goes on waiting, and counts as busy so long.
        """
        await self._free.acquire()
        self._busy += 1
        if self._busy > len(self._threads):
            thread = threading.Thread(target=_answer, args=(self._questions,), name="dns", daemon=True)
            self._threads.append(thread)
            thread.start()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[str]] = loop.create_future()
        self._questions.put(_Question(host, partial(self._settle, answer), loop))
        async with asyncio.timeout(self._timeout_s):
            return await answer

    def close(self) -> None:
        """End the threads, each after the question it is at; none is waited for."""
        for _ in self._threads:
            self._questions.put(None)
        self._threads.clear()

    def _settle(self, answer: asyncio.Future[list[str]], found: list[str] | Exception) -> None:
        self._busy -= 1
        self._free.release()
        if answer.done():
            return  # it came too late
        if isinstance(found, Exception):
            answer.set_exception(found)
        else:
            answer.set_result(found)


@dataclass(frozen=True, slots=True)
class _Question:
    host: str
    settle: Callable[[list[str] | Exception], None]
    loop: asyncio.AbstractEventLoop


def _answer(questions: queue.SimpleQueue[_Question | None]) -> None:
    """Answer questions until None comes; runs in a thread."""
    while (question := questions.get()) is not None:
        found: list[str] | Exception
        try:
            found = _addresses(question.host)
        except Exception as error:  # noqa: BLE001 - handed to the coroutine that asked
            found = error
        with suppress(RuntimeError):  # the loop is closed, and so is all that waited
            question.loop.call_soon_threadsafe(question.settle, found)


def _addresses(host: str) -> list[str]:
    # As bytes the name is taken as it is; a str would be checked against the rules of an older IDNA.
    found = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
