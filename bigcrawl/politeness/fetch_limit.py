"""Limits how many fetches a node runs at a time, so as not to overload its link or CPU: decisions only, no clock.

If a link (or the CPU) is full, further fetches bring no more pages. All fetches only take longer, until they time out.
So the limit depends on how long answers take, compared with how long they take without a crowd:

    the typical time    median over the hosts that answered lately, each counted once, so that a few slow hosts and all
                        hosts that do not answer have no effect
    free time           the typical time without a crowd: the shortest known; it is halved every `FORGOTTEN_MS`, unless
                        it is seen again
    crowded             the typical time exceeds twice the free time plus `QUEUE_MS`, for `WINDOWS_MIN` windows
    room                it is well below that: the limit rises again, at most twofold in a window

A cut is an experiment. If there is a crowd, half as many fetches take half the time each, and as many pages arrive a
second. If neither happens, the hosts themselves are slow: the cut is undone, and their time becomes the free time.

Source: LEDBAT (RFC 6817) keeps a connection's delay above the shortest one seen. PolyBot §4.2 steered the number of
connections by the rate, which depends on many things, and its authors were not satisfied.
"""

from __future__ import annotations

import math
from statistics import median_high
from typing import NamedTuple

QUEUE_MS = 250
"""A crowd that delays answers by no more than this is ignored: it keeps the link busy, and a busy CPU does no harm."""

FREE_FACTOR = 2.0
"""Typical times of different hosts vary by this factor without a crowd."""

FORGOTTEN_MS = 600_000
"""The free time is halved in this time unless it is seen again: a crowd may hide it, and the hosts may change."""

FIRST = 8
"""Fetches at a time at the start, so that the free time is seen once."""

WINDOW_MS = 500
"""Shortest window; a window is never shorter than the typical time."""

HOSTS_MIN = 30
"""With fewer hosts there is no typical time."""

WINDOWS_MIN = 3
"""A crowd takes this many windows in a row; large pages, or a pause of the process, affect fewer."""

PATIENCE_MS = 2_000
"""How long to wait for answers from enough hosts. Then, if nothing indicates a crowd, the limit rises."""

LONGEST_MS = 30_000
"""Longest window."""

HANGING_MS = 2_000
"""A fetch without an answer for this long no longer crowds others, and does not count towards the limit."""

_AIM = 0.75  # share of the crowded time that cuts aim at, and the most that rises aim at
_ROOM = 0.7  # share of the crowded time below which the limit rises
_CUT_MOST, _CUT_LEAST = 0.5, 0.75  # a cut leaves at least this, since it may be wrong; at most that, to show an effect
_FAIR_FACTOR = 4  # typical times after a change; by then not only short fetches have ended since
_RISE_FACTOR = 2  # typical times after which the limit may rise again; if it rises too far, it is cut again
_TRIAL_FACTOR = 1.5  # typical times that a trial lasts at least
_SMOOTH = 0.1  # weight of a window in the mean that decides on crowds and free time, since medians of hosts vary


class _Trial(NamedTuple):
    """A cut whose effect is awaited: the figures before it, and the share of them that means failure."""

    limit: int
    typical_ms: float
    answers_per_ms: float
    bound: float


class FetchLimit:
    """The limit of one node, between `least` and `most`.

    Attributes:
        limit: fetches at a time now, not counting those that hang.
        is_crowded: whether it was cut and has not reached `most` since.
        typical_ms: how long answers took lately, median over hosts; 0 until known.
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
        self._trial: _Trial | None = None
        self._crowded_windows = 0
        self._is_draining = False
        self._changed_ms = now_ms
        self._begin_window(now_ms)

    def __repr__(self) -> str:
        return f"<FetchLimit {self.limit} of {self.least} to {self.most}, answers take {self.typical_ms:.0f} ms>"

    @property
    def crowded_ms(self) -> float:
        """A typical time above this means a crowd."""
        return FREE_FACTOR * self._free_ms + QUEUE_MS

    @property
    def hanging_ms(self) -> float:
        """A fetch under way for longer than this hangs."""
        return max(HANGING_MS, 3 * self.typical_ms)

    def note(self, host: str, took_ms: int, now_ms: int) -> None:
        """Record an answer of a host. Cost: a quarter of a microsecond."""
        self._answers += 1
        if now_ms - took_ms >= self._changed_ms:
            self._took_ms[host] = took_ms

    def look(self, now_ms: int, fetching: int) -> bool:
        """Adjust the limit; call it a few times a second. Returns whether the limit changed.

        Args:
            now_ms: on the clock of `note`.
            fetching: fetches under way that do not hang.
        """
        before = self.limit
        self._forget(now_ms)
        if self._is_draining and fetching > self.limit:
            self._begin_window(now_ms)
            return False
        self._is_draining = False
        self._looks += 1
        self._fetching += fetching
        elapsed_ms = now_ms - self._window_ms
        if not self._took_ms:
            if elapsed_ms >= LONGEST_MS:
                self._begin_window(now_ms)
        elif elapsed_ms >= WINDOW_MS:
            self._decide(now_ms, elapsed_ms, float(median_high(self._took_ms.values())))
        return self.limit != before

    def _decide(self, now_ms: int, elapsed_ms: int, typical_ms: float) -> None:
        fresh_ms = now_ms - self._changed_ms
        is_long = elapsed_ms >= (_TRIAL_FACTOR * self._trial.typical_ms if self._trial else typical_ms)
        is_fair = fresh_ms >= _FAIR_FACTOR * typical_ms
        may_rise = self._trial is None and typical_ms < _ROOM * self.crowded_ms < math.inf
        is_due = is_fair or (may_rise and fresh_ms >= _RISE_FACTOR * typical_ms)
        has_enough = len(self._took_ms) >= HOSTS_MIN and is_long and is_due
        if has_enough or elapsed_ms >= LONGEST_MS:
            self._judge(typical_ms, now_ms, is_fair=is_fair and has_enough)
        elif elapsed_ms >= PATIENCE_MS and self._trial is None and typical_ms <= self.crowded_ms:
            self._rise(typical_ms, now_ms)
        else:
            return
        self._begin_window(now_ms)

    def _judge(self, typical_ms: float, now_ms: int, *, is_fair: bool) -> None:
        self.typical_ms = typical_ms
        self._smooth_ms += (_SMOOTH if self._smooth_ms else 1) * (typical_ms - self._smooth_ms)
        answers_per_ms = self._answers / (now_ms - self._window_ms)
        trial, self._trial = self._trial, None
        if trial is not None and _has_failed(trial, typical_ms, answers_per_ms):
            self._free_ms = self._smooth_ms = typical_ms
            self._crowded_windows = 0
            self._set(trial.limit, now_ms)
            return
        if is_fair:
            self._free_ms = min(self._free_ms, self._smooth_ms)
        if typical_ms <= self.crowded_ms:
            self._crowded_windows = 0
            self._rise(typical_ms, now_ms)
            return
        self._crowded_windows += 1
        has_begun = self._crowded_windows >= WINDOWS_MIN and self._smooth_ms > self.crowded_ms
        if has_begun or trial is not None:
            self._cut(typical_ms, answers_per_ms, now_ms)

    def _rise(self, typical_ms: float, now_ms: int) -> None:
        if typical_ms < _ROOM * self.crowded_ms:
            factor = min(2.0, _AIM * self.crowded_ms / max(1.0, typical_ms))
            self._set(max(self.limit + 1, int(self.limit * factor)), now_ms)

    def _cut(self, typical_ms: float, answers_per_ms: float, now_ms: int) -> None:
        fetching = min(self.limit, self._fetching / self._looks)
        share = max(_CUT_MOST, min(_CUT_LEAST, _AIM * self.crowded_ms / typical_ms))
        cut = max(self.least, math.ceil(fetching * share))
        if cut < fetching:
            self._trial = _Trial(self.limit, typical_ms, answers_per_ms, bound=(1 + cut / fetching) / 2)
            self._set(cut, now_ms)
            self.is_crowded = self._is_draining = True

    def _set(self, limit: int, now_ms: int) -> None:
        limit = min(self.most, limit)
        if limit != self.limit:
            self.limit = limit
            self._changed_ms = now_ms
        if limit == self.most:
            self.is_crowded = False

    def _forget(self, now_ms: int) -> None:
        """Let the free time fade, because a value seen long ago or in a crowd must be found again."""
        self._free_ms *= 0.5 ** ((now_ms - self._looked_ms) / FORGOTTEN_MS)
        self._looked_ms = now_ms

    def _begin_window(self, now_ms: int) -> None:
        self._window_ms = now_ms
        self._took_ms: dict[str, int] = {}
        self._answers = self._looks = self._fetching = 0


def _has_failed(trial: _Trial, typical_ms: float, answers_per_ms: float) -> bool:
    """Whether fewer fetches took as long as before and brought fewer pages; then there is no crowd on our side."""
    return typical_ms > trial.bound * trial.typical_ms and answers_per_ms < trial.bound * trial.answers_per_ms
