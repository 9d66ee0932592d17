"""Pages of which their sites say that they have changed, truly or not: how soon that is seen, and what a lie costs."""

from __future__ import annotations

import random
from bisect import bisect_right
from statistics import median
from typing import Final, NamedTuple

from benchmarks.recrawl.simulation import DAY_S
from bigcrawl.revisiting.policies import RevisitPolicy, WaitBounds, next_hint_check_s
from bigcrawl.revisiting.visit import Answer, Visit, next_visit

SHORTEST_S: Final = 300
LONGEST_S: Final = 90 * DAY_S
SITEMAP_S: Final = 300  # between two readings of the sitemap


class Site(NamedTuple):
    """What a site says of its page: how long it takes to change, 0 for nothing, and whether it says that it has."""

    hinted_s: float = 0.0
    tells: bool = False
    lies: bool = False  # it says that the page has just changed, each time


class Watched(NamedTuple):
    """Visits of a page a day, and the median time from a change to the visit that sees it, after the first day."""

    visits_a_day: float
    delay_s: float


def watched(policy: RevisitPolicy, site: Site, changes_s: list[float], days: int) -> Watched:
    """Visit a page that changes at these times, whenever the policy and its site say so."""
    now_s, visits, seen = 0, 0, 0
    visit: Visit | None = None
    delays: list[float] = []
    while now_s < days * DAY_S:
        version = bisect_right(changes_s, now_s)
        delays += [now_s - at_s for at_s in changes_s[seen:version] if at_s >= DAY_S]
        seen = version
        visit = next_visit(visit, Answer(200, b"%d" % version), now_s, policy, hinted_s=site.hinted_s)
        assert visit is not None, "a page stays a page"
        visits += 1
        now_s = _next_s(visit, site, changes_s)
    return Watched(visits / days, median(delays) if delays else 0.0)


def _next_s(visit: Visit, site: Site, changes_s: list[float]) -> int:
    """When the page is visited next: as soon as a look finds that its site says that it has changed."""
    look_s = visit.soonest_s if site.tells else visit.due_s
    while look_s < visit.due_s:
        read_s = look_s // SITEMAP_S * SITEMAP_S
        told = bisect_right(changes_s, read_s)
        if site.lies or (told and changes_s[told - 1] > visit.last_s):
            return look_s
        look_s = next_hint_check_s(visit.last_s, visit.soonest_s, visit.due_s, look_s)
    return visit.due_s


def news(rule: str, usual_s: int, site: Site, days: int, seed: int) -> Watched:
    """Watch a page that changes once in two hours."""
    dice, at_s, changes_s = random.Random(seed), 0.0, list[float]()
    while (at_s := at_s + dice.expovariate(1 / 7_200)) < days * DAY_S:
        changes_s.append(at_s)
    return watched(RevisitPolicy(rule, WaitBounds(usual_s, SHORTEST_S, LONGEST_S)), site, changes_s, days)


def still(policy: RevisitPolicy, site: Site, days: int) -> Watched:
    """Watch a page that never changes."""
    return watched(policy, site, [], days)
