"""libcurl transfers on the asyncio loop: many at once, without threads.

libcurl reports which sockets it waits for and when to wake it; the loop reports events back. libcurl keeps connections
open for the next transfer to the same host, and closes the one idle longest if there are too many. To find that one it
scans all of them, a millisecond for 4,096, which in a broad crawl would happen with nearly every page. Therefore hosts
are divided among several pools.
"""

from __future__ import annotations

import asyncio
import resource
import select
from contextlib import suppress
from functools import partial
from typing import Final

import pycurl

# A broad crawl leaves an open connection behind with nearly every page: at 1,000 pages/s that exceeds a process' limit.
IDLE_MAX: Final = 4_096
POOLS: Final = 16
UNLIMITED: Final = 1 << 20  # open files, if the system sets no limit


class Transfers:
    """Runs transfers; created inside the event loop that it uses.

    Cost: 70 us of CPU for a page of 21 KB over an open connection.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._watched: dict[int, _Pool] = {}
        # One epoll for all sockets, registered with the loop once, instead of each socket with every transfer.
        self._poll = select.epoll()
        self._loop.add_reader(self._poll.fileno(), self._see)
        idle_max = max(1, min(IDLE_MAX, raise_file_limit() // 2) // POOLS)
        self._pools = [_Pool(self._loop, partial(self._watch, number), idle_max) for number in range(POOLS)]

    def __repr__(self) -> str:
        return f"<Transfers running={self.running} watched={len(self._watched)}>"

    @property
    def running(self) -> int:
        """The number of running transfers."""
        return sum(len(pool.running) for pool in self._pools)

    async def run(self, curl: pycurl.Curl, server: str = "") -> None:
        """Carry out a transfer. Cancelling aborts it and closes its connection.

        Args:
            curl: the handle, ready.
            server: host and port; transfers to the same server share connections.

        Raises:
            pycurl.error: it failed: (code, message).
        """
        await self._pools[hash(server) % POOLS].run(curl)

    def close(self) -> None:
        """Close all connections; no transfer may be running."""
        for pool in self._pools:
            pool.close()
        self._loop.remove_reader(self._poll.fileno())
        self._poll.close()

    def _watch(self, number: int, what: int, fd: int, _multi: object, _data: object) -> None:
        """Change the events that libcurl waits for on a socket."""
        if what == pycurl.POLL_REMOVE:
            if self._watched.pop(fd, None) is not None:
                with suppress(OSError):  # closed already, and so unregistered
                    self._poll.unregister(fd)
            return
        events = (select.EPOLLIN if what & pycurl.POLL_IN else 0) | (select.EPOLLOUT if what & pycurl.POLL_OUT else 0)
        if fd in self._watched:
            self._poll.modify(fd, events)
        else:
            self._poll.register(fd, events)
        self._watched[fd] = self._pools[number]

    def _see(self) -> None:
        """Let libcurl handle the ready sockets, and finish the transfers that ended."""
        touched = set()
        for fd, events in self._poll.poll(0):
            pool = self._watched.get(fd)
            if pool is None:  # closed while an earlier socket was handled
                continue
            ready = pycurl.CSELECT_IN if events & (select.EPOLLIN | select.EPOLLHUP) else 0
            ready |= pycurl.CSELECT_OUT if events & select.EPOLLOUT else 0
            pool.multi.socket_action(fd, ready | (pycurl.CSELECT_ERR if events & select.EPOLLERR else 0))
            touched.add(pool)
        for pool in touched:
            pool.end_all()


class _Pool:
    """The connections of some of the hosts, and the transfers over them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, watch: object, idle_max: int) -> None:
        self.running: dict[pycurl.Curl, asyncio.Future[None]] = {}
        self.multi = pycurl.CurlMulti()
        self.multi.setopt(pycurl.M_SOCKETFUNCTION, watch)
        self.multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        self.multi.setopt(pycurl.M_MAXCONNECTS, idle_max)
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, curl: pycurl.Curl) -> None:
        ended = self.running[curl] = self._loop.create_future()
        try:
            self.multi.add_handle(curl)
            await ended
        finally:
            del self.running[curl]
            self.multi.remove_handle(curl)

    def close(self) -> None:
        self._set_timer(-1)
        self.multi.close()

    def _set_timer(self, wait_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wait_ms >= 0:
            self._timer = self._loop.call_later(wait_ms / 1000, self._wake)

    def _wake(self) -> None:
        """Handle libcurl's timer."""
        self._timer = None
        self.multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self.end_all()

    def end_all(self) -> None:
        """Finish the transfers that have ended."""
        left = 1
        while left:
            left, succeeded, failed = self.multi.info_read()
            for curl in succeeded:
                self._end(curl, None)
            for curl, code, message in failed:
                self._end(curl, pycurl.error(code, message))

    def _end(self, curl: pycurl.Curl, error: Exception | None) -> None:
        ended = self.running.get(curl)
        if ended is None or ended.done():
            return
        if error is None:
            ended.set_result(None)
        else:
            ended.set_exception(error)


def raise_file_limit() -> int:
    """Raise the process' limit on open files to the maximum, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = UNLIMITED
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
