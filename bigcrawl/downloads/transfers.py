"""libcurl transfers on the asyncio loop: many at once, without threads.

If too many connections are open, libcurl closes the one that has been idle longest. To find that one, it scans all of
them: a millisecond for 4,096, at nearly every page of a broad crawl. Therefore hosts are divided among several pools.
"""

from __future__ import annotations

import asyncio
import resource
import select
from contextlib import suppress
from functools import partial
from typing import Final

import pycurl

from bigcrawl.clock import SystemClock

# A broad crawl opens a connection for nearly every page: at 1,000 pages/s too many for one process.
IDLE_MAX: Final = 4_096
POOLS: Final = 16
_clock: Final = SystemClock()
UNLIMITED: Final = 1 << 20  # open files, if the system sets no limit


class Transfers:
    """Runs transfers; create it inside its event loop. Cost: 70 us of CPU a page."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._watched: dict[int, _Pool] = {}
        # One epoll, so that sockets need not be registered with the loop for each transfer.
        self._poll = select.epoll()
        self._loop.add_reader(self._poll.fileno(), self._poll_sockets)
        idle_max = max(1, min(IDLE_MAX, raise_file_limit() // 2) // POOLS)
        self._pools = [_Pool(self._loop, partial(self._watch, number), idle_max) for number in range(POOLS)]

    def __repr__(self) -> str:
        return f"<Transfers running={self.running_count} watched={len(self._watched)}>"

    @property
    def running_count(self) -> int:
        return sum(len(pool.running) for pool in self._pools)

    async def run(self, curl: pycurl.Curl, server: str = "") -> tuple[int, int]:
        """Carry out a transfer. Cancelling aborts it and closes its connection.

        Return when it ended, in us of the boot clock, and the socket of its connection, -1 if closed; or raise
        `pycurl.error`. Transfers to the same `server`, a host and port, share connections.
        """
        return await self._pools[hash(server) % POOLS].run(curl)

    def close(self) -> None:
        for pool in self._pools:
            pool.close()
        self._loop.remove_reader(self._poll.fileno())
        self._poll.close()

    def _watch(self, number: int, what: int, fd: int, _multi: object, _data: object) -> None:
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

    def _poll_sockets(self) -> None:
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
    def __init__(self, loop: asyncio.AbstractEventLoop, watch: object, idle_max: int) -> None:
        self.running: dict[pycurl.Curl, asyncio.Future[int]] = {}
        self.multi = pycurl.CurlMulti()
        self.multi.setopt(pycurl.M_SOCKETFUNCTION, watch)
        self.multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        self.multi.setopt(pycurl.M_MAXCONNECTS, idle_max)
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, curl: pycurl.Curl) -> tuple[int, int]:
        ended: asyncio.Future[int] = self._loop.create_future()
        self.running[curl] = ended
        try:
            self.multi.add_handle(curl)
            ended_us = await ended
            return ended_us, curl.getinfo(pycurl.ACTIVESOCKET)
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
            self._timer = self._loop.call_later(wait_ms / 1000, self._end_at_timeout)

    def _end_at_timeout(self) -> None:
        self._timer = None
        self.multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self.end_all()

    def end_all(self) -> None:
        left = 1
        while left:
            left, succeeded, failed = self.multi.info_read()
            for curl in succeeded:
                self._end_transfer(curl, None)
            for curl, code, message in failed:
                self._end_transfer(curl, pycurl.error(code, message))

    def _end_transfer(self, curl: pycurl.Curl, error: Exception | None) -> None:
        ended = self.running.get(curl)
        if ended is None or ended.done():
            return
        if error is None:
            ended.set_result(_clock.monotonic_us())
        else:
            ended.set_exception(error)


def raise_file_limit() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = UNLIMITED
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
