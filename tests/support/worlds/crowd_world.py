"""A crawl through a link that may be full, in simulated time: hosts take a time of their own, then share the link.

Nothing here is measured: the same seed gives the same crawl.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from operator import attrgetter
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.politeness.fetch_limit import FetchLimit

TICK_MS = 10
LOOK_MS = 200
NEVER_MS = 1 << 40
HOSTS = 2_000
CONNECT_MS = 40
QUEUE_MS_MAX = 500  # of a router
_START_MS = attrgetter("start_ms")


@dataclass(eq=False, slots=True)
class Fetch:
    """One under way: when the host begins to answer, and what is left of its page, in mean pages."""

    start_ms: int
    answers_ms: int
    left: float
    host: str


@dataclass(slots=True)
class Tally:
    """What became of the fetches that ended in a stretch of the crawl."""

    pages: int = 0
    took_ms: int = 0
    timeouts: int = 0

    @property
    def mean_ms(self) -> float:
        return self.took_ms / max(1, self.pages)


def quick(dice: Random) -> int:
    """A third of a second, mostly between 0.15 and 0.6."""
    return round(300 * dice.lognormvariate(0, 0.6))


class CrowdWorld:
    """A node that always has pages to fetch, with a limit that adapts or a fixed one.

    Attributes:
        link: mean pages a second that the link, or the CPU, carries.
        host_ms: how long a host takes, without the link.
        dead: share of the fetches that never get an answer.
        connecting: share of the fetches that open a new connection, besides those that the limit asks for.
    """

    def __init__(self, limit: FetchLimit | int, link: float = 1e6, *, timeout_ms: int = 60_000, seed: int = 1) -> None:
        self.link = link
        self.host_ms: Callable[[Random], int] = quick
        self.dead = 0.0
        self.connecting = 0.0
        self._queue_ms = 0
        self.timeout_ms = timeout_ms
        self.now_ms = 0
        self._limit = limit
        self._dice = Random(seed)
        self._fetches: list[Fetch] = []

    def run(self, seconds: float) -> Tally:
        """Crawl on for a while."""
        tally = Tally()
        for _ in range(round(1000 * seconds / TICK_MS)):
            self.now_ms += TICK_MS
            self._begin()
            self._move(tally)
            if self.now_ms % LOOK_MS == 0 and not isinstance(self._limit, int):
                hanging = self._hanging(self._limit)
                self._limit.adjust(self.now_ms, len(self._fetches) - hanging, hanging)
        return tally

    def _begin(self) -> None:
        limit = self._limit
        room = limit if isinstance(limit, int) else min(limit.most, limit.limit + self._hanging(limit))
        while len(self._fetches) < room:
            waits_ms = NEVER_MS if self._dice.random() < self.dead else self.host_ms(self._dice)
            host = str(self._dice.randrange(HOSTS))
            size = self._dice.lognormvariate(-0.25, 0.7)  # one, in the mean
            self._fetches.append(Fetch(self.now_ms, self.now_ms + waits_ms, size, host))
            if not isinstance(limit, int) and (limit.ask_for_connection() or self._connects()):
                limit.record_connected(host, CONNECT_MS + self._queue_ms, self.now_ms)

    def _connects(self) -> bool:
        return self.connecting > 0 and self._dice.random() < self.connecting

    def _move(self, tally: Tally) -> None:
        sending = [fetch for fetch in self._fetches if fetch.answers_ms <= self.now_ms]
        share = self.link * TICK_MS / 1000 / max(1, len(sending))
        self._queue_ms = min(QUEUE_MS_MAX, round(1000 * sum(fetch.left for fetch in sending) / self.link))
        for fetch in sending:
            fetch.left -= share
            if not isinstance(self._limit, int) and fetch.answers_ms > self.now_ms - TICK_MS:
                self._limit.record_response_head()
        for fetch in [fetch for fetch in sending if fetch.left <= 0]:
            took_ms = self.now_ms - fetch.start_ms
            tally.pages += 1
            tally.took_ms += took_ms
            self._fetches.remove(fetch)
            if not isinstance(self._limit, int):
                self._limit.record_answer(fetch.host, took_ms, self.now_ms)
                self._limit.record_sign_of_life(self.now_ms)
        timeouts = self._begun_before(self.now_ms - self.timeout_ms + 1)
        tally.timeouts += timeouts
        del self._fetches[:timeouts]

    def _hanging(self, limit: FetchLimit) -> int:
        return self._begun_before(self.now_ms - limit.hanging_ms)

    def _begun_before(self, at_ms: float) -> int:
        """How many fetches began before that; they stand in the order in which they began."""
        return bisect_left(self._fetches, at_ms, key=_START_MS)
