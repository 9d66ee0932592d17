"""Pages that change at known rates, visited by the real policies on a clock of their own."""

from __future__ import annotations

import heapq
import random
from bisect import bisect_right
from itertools import pairwise
from math import expm1
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.revisiting.allocation import frequency_at, price_of
from bigcrawl.revisiting.change_rate import change_rate, with_comparison
from bigcrawl.revisiting.policies import RevisitPolicy, WaitBounds
from bigcrawl.revisiting.visit import Answer, next_visit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.revisiting.change_rate import History
    from bigcrawl.revisiting.visit import Visit

DAY_S: Final = 86_400
_LONGEST_DAYS: Final = 120


class Estimated(NamedTuple):
    """Errors of estimates, as parts of the true rate: the median of their sizes, and their mean."""

    median: float
    bias: float


def estimates(pages: int, visits: int, intervals_s: Sequence[int], seed: int) -> Estimated:
    """Visit pages of different rates so often, and compare the estimates of their rates with the rates."""
    dice = random.Random(seed)
    errors = []
    for _ in range(pages):
        rate = 1 / (DAY_S * dice.choice((0.7, 1.0, 1.4)))
        history: History = ()
        for _ in range(visits):
            interval_s = dice.choice(intervals_s)
            changed = dice.expovariate(rate) < interval_s
            history = with_comparison(history, interval_s, changed=changed)
        errors.append(change_rate(history) / rate - 1)
    return Estimated(sorted(map(abs, errors))[pages // 2], sum(errors) / pages)


class Page:
    """A page with its changes, drawn in advance."""

    def __init__(self, rate: float, until_s: int, dice: random.Random) -> None:
        self.rate = rate
        self.changes: list[float] = []
        at_s = dice.expovariate(rate)
        while at_s < until_s:
            self.changes.append(at_s)
            at_s += dice.expovariate(rate)
        self.visited_s: list[int] = []
        self.known: Visit | None = None

    def visit(self, now_s: int, policy: RevisitPolicy) -> int:
        """Visit the page, and return when it is due next."""
        version = bisect_right(self.changes, now_s)
        self.known = next_visit(self.known, Answer(200, b"%d" % version), now_s, policy)
        assert self.known is not None, "a page stays a page"
        self.visited_s.append(now_s)
        return self.known.due_s

    def freshness(self, since_s: int, until_s: int) -> float:
        """The part of the time for which the last copy was up to date."""
        fresh_s = 0.0
        for start_s, end_s in pairwise([*self.visited_s, until_s]):
            place = bisect_right(self.changes, start_s)
            stale_s = self.changes[place] if place < len(self.changes) else until_s
            fresh_s += max(0.0, min(end_s, stale_s) - max(start_s, since_s))
        return fresh_s / (until_s - since_s)


class Simulated(NamedTuple):
    """How fresh the pages were on the average, and how many visits a day each had, after all was learned."""

    freshness: float
    visits_a_day: float


def simulated(rule: str, rates: Sequence[float], days: int, learning_days: int, seed: int) -> Simulated:
    """Visit all pages once a day on the average by a policy. Measure after the days of learning."""
    until_s, since_s = days * DAY_S, learning_days * DAY_S
    dice = random.Random(seed)
    policy = RevisitPolicy(rule, WaitBounds(DAY_S, DAY_S / 48, _LONGEST_DAYS * DAY_S))
    pages = [Page(rate, until_s, dice) for rate in rates]
    due = [(dice.randrange(DAY_S), number) for number in range(len(pages))]
    heapq.heapify(due)
    while due[0][0] < until_s:
        now_s, number = heapq.heappop(due)
        heapq.heappush(due, (pages[number].visit(now_s, policy), number))
    late = sum(bisect_right(page.visited_s, until_s) - bisect_right(page.visited_s, since_s) for page in pages)
    mean = sum(page.freshness(since_s, until_s) for page in pages) / len(pages)
    return Simulated(mean, late / len(pages) / (days - learning_days))


def freshness(rate: float, frequency: float) -> float:
    """Return the part of the time for which a page is up to date that changes and is visited so often."""
    if frequency <= 0:
        return 0.0
    return -expm1(-rate / frequency) * frequency / rate


def optimum(rates: Sequence[float], visits_a_day: float) -> float:
    """How fresh pages of known rates can be with so many visits a day each on the average."""
    price = price_of(rates, [1.0] * len(rates), visits_a_day / DAY_S)
    return sum(freshness(rate, frequency_at(rate, price)) for rate in rates) / len(rates)


def uniform(rates: Sequence[float], visits_a_day: float) -> float:
    """How fresh they are if all get as many."""
    return sum(freshness(rate, visits_a_day / DAY_S) for rate in rates) / len(rates)


def drawn_rates(pages: int, seed: int) -> list[float]:
    """Rates as skewed as on the web: most pages change in weeks or months, some many times a day."""
    dice = random.Random(seed)
    return [min(dice.lognormvariate(-1.5, 2.0), 50.0) / DAY_S for _ in range(pages)]
