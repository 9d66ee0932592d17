"""libcurl's transfers on the asyncio loop: many at once, none with a thread.

libcurl says which sockets it waits for and when it wants to be woken; the loop tells it what happened. It keeps
connections open for the next transfer to the same host, and closes the one that was idle longest when there
are too many.
"""

from __future__ import annotations

import asyncio
import resource
import select
from contextlib import suppress
from typing import Final

import pycurl

# A broad crawl leaves an open connection behind with nearly every page: at 1,000 pages/s, more than a process
# may have.
IDLE_MAX: Final = 4_096
UNLIMITED: Final = 1 << 20  # files, where the system sets no limit


class Transfers:
    """Runs transfers; made inside the loop it works on.

    Cost: 70 us of CPU for a page of 21 KB over a connection that is open.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._running: dict[pycurl.Curl, asyncio.Future[None]] = {}
        self._watched: dict[int, int] = {}
        # One for all sockets: the loop is told of it once, and not of each socket with every transfer.
        self._poll = select.epoll()
        self._loop.add_reader(self._poll.fileno(), self._see)
        self._timer: asyncio.TimerHandle | None = None
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, min(IDLE_MAX, raise_file_limit() // 2))

    def __repr__(self) -> str:
        return f"<Transfers running={len(self._running)} watched={len(self._watched)}>"

    async def run(self, curl: pycurl.Curl) -> None:
        """Carry out a transfer; one that is cancelled is broken off, its connection closed.

        Raises:
            pycurl.error: it failed: (code, message).
        """
        ended = self._running[curl] = self._loop.create_future()
        try:
            self._multi.add_handle(curl)
            await ended
        finally:
            del self._running[curl]
            self._multi.remove_handle(curl)

    def close(self) -> None:
        """Close all connections; nothing may be running."""
        self._set_timer(-1)
        self._multi.close()
        self._loop.remove_reader(self._poll.fileno())
        self._poll.close()

    def _watch(self, what: int, fd: int, _multi: object, _data: object) -> None:
        """libcurl wants to know other things of a socket than before."""
        if what == pycurl.POLL_REMOVE:
            if self._watched.pop(fd, 0):
                with suppress(OSError):  # closed already, and so forgotten already
                    self._poll.unregister(fd)
            return
        events = (select.EPOLLIN if what & pycurl.POLL_IN else 0) | (select.EPOLLOUT if what & pycurl.POLL_OUT else 0)
        if fd in self._watched:
            self._poll.modify(fd, events)
        else:
            self._poll.register(fd, events)
        self._watched[fd] = events

    def _see(self) -> None:
        """Sockets are ready: let libcurl work with each, and see what ended by it."""
        for fd, events in self._poll.poll(0):
            ready = pycurl.CSELECT_IN if events & (select.EPOLLIN | select.EPOLLHUP) else 0
            ready |= pycurl.CSELECT_OUT if events & select.EPOLLOUT else 0
            self._multi.socket_action(fd, ready | (pycurl.CSELECT_ERR if events & select.EPOLLERR else 0))
        self._end_all()

    def _set_timer(self, wait_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wait_ms >= 0:
            self._timer = self._loop.call_later(wait_ms / 1000, self._wake)

    def _wake(self) -> None:
        """The time has come that libcurl asked for."""
        self._timer = None
        self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._end_all()

    def _end_all(self) -> None:
        left = 1
        while left:
            left, succeeded, failed = self._multi.info_read()
            for curl in succeeded:
                self._end(curl, None)
            for curl, code, message in failed:
                self._end(curl, pycurl.error(code, message))

    def _end(self, curl: pycurl.Curl, error: Exception | None) -> None:
        ended = self._running.get(curl)
        if ended is None or ended.done():
            return
        if error is None:
            ended.set_result(None)
        else:
            ended.set_exception(error)


def raise_file_limit() -> int:
    """Let the process open as many files as it may, and return their number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = UNLIMITED
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
