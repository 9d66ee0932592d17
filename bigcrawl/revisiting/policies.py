"""How long to wait before a page is visited again: four rules, of which a setting chooses one.

    periodic      the same wait for every page
    change-rate   as long as the page takes to change, on average
    quality       the same; but a page that is not important is taken to change no faster than the median page
    freshness     so that all pages together are as fresh as possible, with one visit in the mean wait for each

A page is assumed to change at least once in twice the time for which it was watched. So the waits of a page that has
not changed yet double. What its site says of it counts as one visit (`hints`). All waits lie between two bounds.
Source: Nexplorer §3.2 (periodic, by change), the system-design note 003 (quality beside the rate: spam changes all the
time), and for `freshness` see `bigcrawl.revisiting.allocation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bigcrawl.revisiting.allocation import frequency_at
from bigcrawl.revisiting.change_rate import change_rate
from bigcrawl.revisiting.hints import TRUST, with_hint
from bigcrawl.revisiting.rate_sample import RateSample

if TYPE_CHECKING:
    from bigcrawl.revisiting.change_rate import History

NEVER: Final = "never"
PERIODIC: Final = "periodic"
CHANGE_RATE: Final = "change-rate"
QUALITY: Final = "quality"
FRESHNESS: Final = "freshness"
POLICIES: Final = (NEVER, PERIODIC, CHANGE_RATE, QUALITY, FRESHNESS)

_UNCERTAIN = 2  # a page that was watched for a time may well stay unchanged for twice that
_DOUBTFUL = 8  # usual waits after which a page that is not worth a visit gets one, because estimates err


@dataclass(frozen=True, slots=True)
class WaitBounds:
    """Waits in seconds: the usual one, the shortest and the longest."""

    usual_s: float
    shortest_s: float
    longest_s: float


class RevisitPolicy:
    """One rule, and what a node has learned about its pages' rates."""

    def __init__(self, rule: str, bounds: WaitBounds, sample: RateSample | None = None) -> None:
        self._rule = rule
        self._bounds = bounds
        self._sample = sample or RateSample()

    def __repr__(self) -> str:
        return f"<RevisitPolicy {self._rule} {self._sample!r}>"

    def wait_s(self, history: History, since_s: float, *, is_important: bool = False, hinted_s: float = 0.0) -> int:
        """Return how many seconds a page waits for its next visit.

        Args:
            history: of the page; empty after its first visit.
            since_s: how long ago it was visited before.
            is_important: whether the page is worth more than the median page, however often it changes.
            hinted_s: how long the page takes to change, as its site says; 0 for nothing. It counts as one visit.
        """
        if self._rule == PERIODIC or not (history or hinted_s):
            return self._bounded(self._bounds.usual_s)
        slowest, rate = 0.0, 0.0
        if history:
            slowest = 1 / (_UNCERTAIN * sum(group.seconds for group in history))
            rate = max(change_rate(history), slowest)
            self._sample.note(rate, since_s)  # without the hint: other pages do not hear of what a site says
        if hinted_s:
            rate = max(change_rate(with_hint(history, self._believed_s(hinted_s, is_important))), slowest)
        if self._rule == FRESHNESS:
            return self._bounded(self._fresh_s(rate))
        if self._rule == QUALITY and not is_important and (self._sample.is_known or hinted_s):
            rate = max(min(rate, 1 / self._median_s()), slowest)
        return self._bounded(1 / rate)

    def soonest_s(self, wait_s: int, *, is_important: bool = False) -> int:
        """Return after how many seconds a page with this wait may be visited if its site says that it has changed.

        An important page may be visited after the shortest wait, any other one after an eighth of its own wait; with
        `quality`, no sooner than the median page. With `periodic`, no page is brought forward.
        """
        if self._rule == PERIODIC:
            return wait_s
        least_s = 0.0 if is_important else wait_s / TRUST
        if self._rule == QUALITY and not is_important:
            least_s = max(least_s, self._median_s())
        return min(wait_s, self._bounded(least_s))

    def _believed_s(self, hinted_s: float, is_important: bool) -> float:
        """How long a page takes to change according to its site, within the bounds of what is believed."""
        usual_s = self._bounds.usual_s
        least_s = self._bounds.shortest_s if is_important else usual_s / TRUST
        return min(max(hinted_s, least_s), usual_s * TRUST)

    def _median_s(self) -> float:
        """How long the median page takes to change; the usual wait while that is not known."""
        return 1 / self._sample.median() if self._sample.is_known else self._bounds.usual_s

    def retry_s(self, waited_s: float) -> int:
        """Return how many seconds a page waits after a visit that brought no answer, this long after the last good one.

        It doubles with each such visit, up to the longest wait.
        """
        return self._bounded(waited_s)

    def _fresh_s(self, rate: float) -> float:
        usual_s = self._bounds.usual_s
        if not self._sample.is_known:
            return usual_s
        frequency = frequency_at(rate, self._sample.price(1 / usual_s))
        return 1 / frequency if frequency > 0 else _DOUBTFUL * usual_s

    def _bounded(self, wait_s: float) -> int:
        bounds = self._bounds
        return round(min(max(wait_s, bounds.shortest_s), bounds.longest_s))
