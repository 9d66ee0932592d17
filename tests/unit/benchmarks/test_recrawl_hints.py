"""What a site's word is worth over weeks: news are seen within minutes, and lies cost little."""

from __future__ import annotations

from statistics import fmean

import pytest

from benchmarks.recrawl.hints import LONGEST_S, SHORTEST_S, Site, news, still
from benchmarks.recrawl.simulation import DAY_S
from bigcrawl.revisiting.allocation import KNOWN_FROM
from bigcrawl.revisiting.change_rate import with_comparison
from bigcrawl.revisiting.policies import RevisitPolicy, WaitBounds
from bigcrawl.revisiting.rules import CHANGE_RATE, PERIODIC, QUALITY

TOLD = Site(3_600, tells=True)
LIE = Site(1, tells=True, lies=True)


@pytest.mark.parametrize("usual_s", [3_600, DAY_S])
def test_news_are_seen_within_minutes_if_their_site_says_so(usual_s: int) -> None:
    """Whatever the usual wait is; the visits learn it, and a fixed cycle does not."""
    told, untold = (fmean(news(CHANGE_RATE, usual_s, s, 20, seed).delay_s for seed in range(5)) for s in (TOLD, Site()))
    assert told <= 20 * 60
    assert untold >= 3 * told
    assert news(PERIODIC, usual_s, TOLD, 5, 1) == news(PERIODIC, usual_s, Site(), 5, 1)


def test_a_lie_costs_no_more_visits_than_the_median_page_has() -> None:
    """Of a page that never changes, among pages that change once a day; with `quality` it costs next to nothing."""

    def visits_a_day(rule: str, site: Site) -> float:
        policy = RevisitPolicy(rule, WaitBounds(DAY_S, SHORTEST_S, LONGEST_S))
        for _ in range(KNOWN_FROM):
            policy.wait_s(with_comparison((), DAY_S, changed=True), DAY_S)
        return still(policy, site, 200).visits_a_day

    assert visits_a_day(QUALITY, Site()) < visits_a_day(QUALITY, LIE) < visits_a_day(CHANGE_RATE, LIE) < 0.5
