"""Limits a node's concurrent fetches, so as not to overload its link or CPU. The caller provides the clock.

docs/crowds.md says how it decides. A cut of the limit is an experiment: if there is congestion, half as many fetches
take half the time each, and the rate of pages stays the same; if neither is so, the hosts themselves are slow, and the
cut is undone. That takes several typical times, so it is done only if no other sign decides.

Source: LEDBAT (RFC 6817) keeps a connection's delay above the shortest one seen. PolyBot §4.2 steered the number of
connections by the rate, which depends on many things, and its authors were not satisfied.
"""

from __future__ import annotations

import math
from collections import deque
from statistics import median_high
from typing import NamedTuple

QUEUE_MS = 250
"""Shorter queueing delays are no congestion: they keep the link busy, and do the CPU no harm."""

FREE_FACTOR = 2.0

FORGOTTEN_MS = 600_000
"""The remembered free time halves in this time unless it is seen again: congestion may hide it, hosts may change."""

FIRST = 8
"""Concurrent fetches at the start: few, so that the free time is seen once."""

WINDOW_MS = 500
"""The shortest window. A window also lasts at least the typical time."""

HOSTS_MIN = 30
"""The typical time is known once this many hosts have answered."""

WINDOWS_MIN = 3
"""Crowded windows that mean congestion; large pages, or a pause of the process, crowd fewer."""

PATIENCE_MS = 2_000
"""How long to wait for answers from enough hosts. Then the limit rises, unless there is a sign of congestion."""

LONGEST_MS = 30_000

HANGING_MS = 2_000
"""A fetch without an answer for this long hangs, and does not count towards the limit."""

SILENT_MS = 1_000
"""If no answer has begun for this time, but hosts are reached, the limit doubles."""

ALIVE_MS = 10_000
"""Hosts are reached if this time has brought `SIGNS_MIN` opened connections or answers."""

SIGNS_MIN = 8

CONNECT_MS_MAX = 3_000
"""Opening a connection counts as at most this long: the system resends lost packets after one second, then two."""

LATE_MS = 400
"""Mean time between two calls of `adjust` above which loop and CPU are too busy for conclusions."""

_CONNECTING_MS = QUEUE_MS // 2  # congestion delays connects by at least this
_PROBED = 8  # while hosts seem slow, one of this many requests opens a new connection
_AIM = 0.75  # cuts and rises aim at a typical time of this share of `crowded_ms`
_ROOM = 0.7  # the limit rises if the typical time is below this share of `crowded_ms`
_CUT_MOST, _CUT_LEAST = 0.5, 0.75  # a cut leaves half, as it may be wrong, to three quarters, to have an effect
_FAIR_FACTOR = 4  # typical times to wait after a change; by then, long fetches begun since it have ended too
_RISE_FACTOR = 2  # typical times after which the limit may rise again
_TRIAL_FACTOR = 1.5  # typical times that a trial lasts at least
_SMOOTH = 0.1  # weight of a window in the mean that decides on congestion and free time


class _CutTrial(NamedTuple):
    """A cut of the limit on trial: the figures before it. If both stay above `bound` times these, it has failed."""

    limit: int
    typical_ms: float
    answers_per_ms: float
    bound: float


class FetchLimit:
    """The limit of one node, between `least` and `most`.

    Attributes:
        limit: fetches that may run now, besides those that hang.
        is_crowded: whether the limit was cut and has not reached `most` since.
        typical_ms: how long answers took recently, as the median over hosts; 0 until known.
    """

    def __init__(self, least: int, most: int, now_ms: int = 0) -> None:
        self.least = max(1, min(least, most))
        self.most = most
        self.limit = min(most, max(self.least, FIRST))
        self.is_crowded = False
        self.typical_ms = 0.0
        self._free_ms = math.inf
        self._smooth_ms = 0.0
        self._looked_ms = now_ms
        self._trial: _CutTrial | None = None
        self._crowded_windows = 0
        self._is_draining = False
        self._changed_ms = now_ms
        self._in_flight = 0
        self._connected: dict[str, tuple[int, int]] = {}
        self._connect_ms = math.inf
        self._signs_ms: deque[int] = deque(maxlen=SIGNS_MIN)
        self._asked = 0
        self._begin_window(now_ms)

    @property
    def crowded_ms(self) -> float:
        """If `typical_ms` exceeds this, there is congestion, or the hosts themselves are slow."""
        return FREE_FACTOR * self._free_ms + QUEUE_MS

    @property
    def hanging_ms(self) -> float:
        """A fetch that takes longer than this counts as hanging."""
        return max(HANGING_MS, 3 * self.typical_ms)

    def record_answer(self, host: str, took_ms: int, now_ms: int) -> None:
        self._answers += 1
        if now_ms - took_ms >= self._changed_ms:
            self._took_ms[host] = took_ms

    def record_connected(self, server: str, took_ms: int, now_ms: int) -> None:
        self._connected[server] = now_ms, min(took_ms, CONNECT_MS_MAX)
        self._signs_ms.append(now_ms)

    def record_sign_of_life(self, now_ms: int) -> None:
        """Record that some answer has come, even only a robots.txt, so the link is alive."""
        self._signs_ms.append(now_ms)

    def record_response_head(self) -> None:
        self._heads += 1

    def ask_for_connection(self) -> bool:
        """Return whether the next request should open a new connection; now and then, to time its opening."""
        if self.is_crowded or self.typical_ms <= self.crowded_ms:
            return False
        self._asked += 1
        return self._asked % _PROBED == 0

    def adjust(self, now_ms: int, fetching: int, hanging: int = 0) -> bool:
        """Adjust the limit, given the numbers of running and of hanging fetches. Return whether it changed."""
        before = self.limit
        self._in_flight = fetching + hanging
        self._age_free_time(now_ms)
        if self._is_draining and fetching > self.limit:
            self._begin_window(now_ms)
            return False
        self._is_draining = False
        self._looks += 1
        self._fetching += fetching
        elapsed_ms = now_ms - self._window_ms
        if not self._took_ms:
            if self._is_silent(now_ms, elapsed_ms):
                self._set_limit(2 * self.limit, now_ms)
                self._begin_window(now_ms)
            elif elapsed_ms >= LONGEST_MS:
                self._begin_window(now_ms)
        elif elapsed_ms >= WINDOW_MS:
            self._adjust_once(now_ms, elapsed_ms, float(median_high(self._took_ms.values())))
        return self.limit != before

    def _adjust_once(self, now_ms: int, elapsed_ms: int, typical_ms: float) -> None:
        if typical_ms < _ROOM * self.crowded_ms:
            self._connect_ms = min(self._connect_ms, self._mean_connect_ms(now_ms))
        fresh_ms = now_ms - self._changed_ms
        is_long = elapsed_ms >= (_TRIAL_FACTOR * self._trial.typical_ms if self._trial else typical_ms)
        is_fair = fresh_ms >= _FAIR_FACTOR * typical_ms
        may_rise = self._trial is None and typical_ms < _ROOM * self.crowded_ms < math.inf
        is_due = is_fair or (may_rise and fresh_ms >= _RISE_FACTOR * typical_ms)
        has_enough = len(self._took_ms) >= HOSTS_MIN and is_long and is_due
        if has_enough or elapsed_ms >= LONGEST_MS:
            self._judge_congestion(typical_ms, now_ms, is_fair=is_fair and has_enough)
        elif (
            elapsed_ms >= PATIENCE_MS
            and self._trial is None
            and (typical_ms <= self.crowded_ms or self._is_link_free(now_ms))
        ):
            self._raise_limit(typical_ms, now_ms)
        else:
            return
        self._begin_window(now_ms)

    def _judge_congestion(self, typical_ms: float, now_ms: int, *, is_fair: bool) -> None:
        hung_ms, self.typical_ms = self.hanging_ms, typical_ms
        self._smooth_ms += (_SMOOTH if self._smooth_ms else 1) * (typical_ms - self._smooth_ms)
        answers_per_ms = self._answers / (now_ms - self._window_ms)
        trial, self._trial = self._trial, None
        if trial is not None and _has_failed(trial, typical_ms, answers_per_ms):
            self._free_ms = self._smooth_ms = typical_ms
            self._crowded_windows = 0
            self._set_limit(trial.limit, now_ms)
            return
        if is_fair:
            self._free_ms = min(self._free_ms, self._smooth_ms)
        is_free = trial is None and self._is_link_free(now_ms)
        if typical_ms <= self.crowded_ms or is_free:
            self._crowded_windows = 0
            if is_free and self.hanging_ms > FREE_FACTOR * hung_ms:  # no longer hanging but slow
                self._set_limit(max(self.limit, self._in_flight), now_ms)
            self._raise_limit(typical_ms, now_ms)
            return
        self._crowded_windows += 1
        has_begun = self._crowded_windows >= WINDOWS_MIN and self._smooth_ms > self.crowded_ms
        if has_begun or trial is not None:
            self._cut_limit(typical_ms, answers_per_ms, now_ms)

    def _raise_limit(self, typical_ms: float, now_ms: int) -> None:
        if typical_ms > self.crowded_ms:
            self._set_limit(2 * self.limit, now_ms)  # the hosts are slow
        elif typical_ms < _ROOM * self.crowded_ms:
            factor = min(2.0, _AIM * self.crowded_ms / max(1.0, typical_ms))
            self._set_limit(max(self.limit + 1, int(self.limit * factor)), now_ms)

    def _cut_limit(self, typical_ms: float, answers_per_ms: float, now_ms: int) -> None:
        fetching = min(self.limit, self._fetching / self._looks)
        share = max(_CUT_MOST, min(_CUT_LEAST, _AIM * self.crowded_ms / typical_ms))
        cut = max(self.least, math.ceil(fetching * share))
        if cut < fetching:
            self._trial = _CutTrial(self.limit, typical_ms, answers_per_ms, bound=(1 + cut / fetching) / 2)
            self._set_limit(cut, now_ms)
            self.is_crowded = self._is_draining = True

    def _set_limit(self, limit: int, now_ms: int) -> None:
        limit = min(self.most, limit)
        if limit != self.limit:
            self.limit = limit
            self._changed_ms = now_ms
        if limit == self.most:
            self.is_crowded = False

    def _is_silent(self, now_ms: int, elapsed_ms: int) -> bool:
        is_alive = len(self._signs_ms) == SIGNS_MIN and now_ms - self._signs_ms[0] <= ALIVE_MS
        is_used = self._in_flight >= self.limit and not self._heads
        return elapsed_ms >= SILENT_MS and is_alive and is_used and self._trial is None and not self.is_crowded

    def _is_link_free(self, now_ms: int) -> bool:
        """Whether connections open as fast as without congestion (no proof after a cut), and the loop is on time."""
        known_ms = 0.0 if self._connect_ms == math.inf else self._connect_ms
        is_late = now_ms - self._window_ms > LATE_MS * self._looks
        bound_ms = min(FREE_FACTOR * known_ms + _CONNECTING_MS, 2 * QUEUE_MS)
        return not self.is_crowded and not is_late and self._mean_connect_ms(now_ms) <= bound_ms

    def _mean_connect_ms(self, now_ms: int) -> float:
        since_ms = min(self._window_ms, now_ms - PATIENCE_MS)
        took_ms = [took_ms for at_ms, took_ms in self._connected.values() if at_ms >= since_ms]
        return sum(took_ms) / len(took_ms) if len(took_ms) >= SIGNS_MIN else math.inf

    def _age_free_time(self, now_ms: int) -> None:
        """Lower the remembered times of a free link slowly, so that old or congested values are replaced."""
        fading = 0.5 ** ((now_ms - self._looked_ms) / FORGOTTEN_MS)
        self._free_ms *= fading
        self._connect_ms *= fading
        self._looked_ms = now_ms

    def _begin_window(self, now_ms: int) -> None:
        self._window_ms = now_ms
        self._took_ms: dict[str, int] = {}
        self._answers = self._looks = self._fetching = self._heads = 0
        since_ms = now_ms - PATIENCE_MS
        self._connected = {server: took for server, took in self._connected.items() if took[0] >= since_ms}


def _has_failed(trial: _CutTrial, typical_ms: float, answers_per_ms: float) -> bool:
    """Return whether a cut failed: fewer fetches took as long and brought fewer pages, so the hosts are slow."""
    return typical_ms > trial.bound * trial.typical_ms and answers_per_ms < trial.bound * trial.answers_per_ms
