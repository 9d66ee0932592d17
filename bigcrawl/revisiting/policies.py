"""Decides how long a page waits for its next visit, by one of the rules in docs/guide/recrawl.md.

A page is assumed to change at least once in twice the time for which it was watched, so the waits of a page that never
changes double. Source: Nexplorer §3.2 (periodic, by change); the system-design note 003 (quality beside the rate,
because spam changes all the time); for `freshness`, `bigcrawl.revisiting.allocation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bigcrawl.revisiting.allocation import RateSample, frequency_at
from bigcrawl.revisiting.change_rate import change_rate, with_comparison
from bigcrawl.revisiting.rules import FRESHNESS, PERIODIC, QUALITY, TRUST

if TYPE_CHECKING:
    from bigcrawl.revisiting.change_rate import History

_UNCERTAIN = 2  # an unchanged page may stay so for twice the time watched
_DOUBTFUL = 8  # usual waits after which a page not worth a visit gets one, because estimates err


@dataclass(frozen=True, slots=True)
class WaitBounds:
    usual_s: float
    shortest_s: float
    longest_s: float


class RevisitPolicy:
    def __init__(self, rule: str, bounds: WaitBounds, sample: RateSample | None = None) -> None:
        self._rule = rule
        self._bounds = bounds
        self._sample = sample or RateSample()

    def wait_s(self, history: History, since_s: float, *, is_important: bool = False, hinted_s: float = 0.0) -> int:
        """Return how many seconds a page waits for its next visit, `since_s` after the visit before.

        `history` is empty after the first visit. `is_important`: the page is worth more than the median page.
        `hinted_s`: seconds between changes according to the site; 0 without a hint.
        """
        if self._rule == PERIODIC or not (history or hinted_s):
            return self._bounded_wait(self._bounds.usual_s)
        slowest, rate = 0.0, 0.0
        if history:
            slowest = 1 / (_UNCERTAIN * sum(group.seconds for group in history))
            rate = max(change_rate(history), slowest)
            self._sample.add_rate(rate, since_s)  # without the hint: a site must not affect the waits of others
        if hinted_s:
            rate = max(change_rate(with_hint(history, self._believed_s(hinted_s, is_important))), slowest)
        if self._rule == FRESHNESS:
            return self._bounded_wait(self._fresh_s(rate))
        if self._rule == QUALITY and not is_important and (self._sample.is_known or hinted_s):
            rate = max(min(rate, 1 / self._median_s()), slowest)
        return self._bounded_wait(1 / rate)

    def soonest_s(self, wait_s: int, *, is_important: bool = False) -> int:
        """Return after how many seconds a page may be visited if its site announces a change."""
        if self._rule == PERIODIC:
            return wait_s
        least_s = 0.0 if is_important else wait_s / TRUST
        if self._rule == QUALITY and not is_important:
            least_s = max(least_s, self._median_s())
        return min(wait_s, self._bounded_wait(least_s))

    def _believed_s(self, hinted_s: float, is_important: bool) -> float:
        usual_s = self._bounds.usual_s
        least_s = self._bounds.shortest_s if is_important else usual_s / TRUST
        return min(max(hinted_s, least_s), usual_s * TRUST)

    def _median_s(self) -> float:
        return 1 / self._sample.median() if self._sample.is_known else self._bounds.usual_s

    def retry_s(self, waited_s: float) -> int:
        """Return the wait after a failed visit, `waited_s` after the last answer; it doubles with each failure."""
        return self._bounded_wait(waited_s)

    def _fresh_s(self, rate: float) -> float:
        usual_s = self._bounds.usual_s
        if not self._sample.is_known:
            return usual_s
        frequency = frequency_at(rate, self._sample.price(1 / usual_s))
        return 1 / frequency if frequency > 0 else _DOUBTFUL * usual_s

    def _bounded_wait(self, wait_s: float) -> int:
        bounds = self._bounds
        return round(min(max(wait_s, bounds.shortest_s), bounds.longest_s))


def with_hint(history: History, period_s: float) -> History:
    return with_comparison(history, round(period_s), changed=True)


def next_hint_check_s(last_s: int, soonest_s: int, due_s: int, now_s: int) -> int:
    """Return when to check for a hint: first at `soonest_s`, then whenever the wait since `last_s` has doubled.

    `due_s` is returned if no check comes before the visit. A check costs no fetch.
    """
    look_s = soonest_s
    while look_s <= now_s and look_s < due_s:
        look_s = max(last_s + 2 * (look_s - last_s), look_s + 1)
    return min(look_s, due_s)
