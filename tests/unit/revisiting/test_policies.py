"""The four rules for the wait between two visits."""

from __future__ import annotations

import pytest

from bigcrawl.default_settings import BY_NAME
from bigcrawl.revisiting.allocation import KNOWN_FROM, RateSample
from bigcrawl.revisiting.change_rate import History, change_rate, with_comparison
from bigcrawl.revisiting.policies import RevisitPolicy, WaitBounds
from bigcrawl.revisiting.rules import CHANGE_RATE, FRESHNESS, PERIODIC, QUALITY, RULES

BOUNDS = WaitBounds(usual_s=1_000, shortest_s=10, longest_s=100_000)


def history_of(interval_s: int, *changed: bool) -> History:
    history: History = ()
    for each in changed:
        history = with_comparison(history, interval_s, changed=each)
    return history


ALWAYS = history_of(100, *[True] * 20)
NEVER_CHANGED = history_of(1_000, *[False] * 10)


def test_the_setting_offers_exactly_the_rules() -> None:
    """The names in the table of settings are those that are implemented."""
    assert BY_NAME["BIGCRAWL_REVISIT"].choices == RULES


@pytest.mark.parametrize("rule", [PERIODIC, CHANGE_RATE, QUALITY, FRESHNESS])
def test_the_second_visit_comes_after_the_usual_wait(rule: str) -> None:
    """Of a page that was visited once nothing is known."""
    assert RevisitPolicy(rule, BOUNDS).wait_s((), 0) == 1_000


def test_a_page_is_visited_when_it_has_probably_changed() -> None:
    """With `change-rate` the wait is one change long."""
    history = history_of(100, *[True, False] * 15)
    assert RevisitPolicy(CHANGE_RATE, BOUNDS).wait_s(history, 100) == pytest.approx(1 / change_rate(history), rel=0.02)


def test_an_unchanged_page_waits_twice_as_long_as_it_was_watched() -> None:
    """No page goes from one visit without a change to the longest wait."""
    policy = RevisitPolicy(CHANGE_RATE, BOUNDS)
    assert policy.wait_s(history_of(1_000, False), 1_000) == 2_000
    assert policy.wait_s(NEVER_CHANGED, 1_000) == 20_000


def test_waits_are_bounded() -> None:
    """However fast or slow a page is, its wait lies between the bounds."""
    policy = RevisitPolicy(CHANGE_RATE, BOUNDS)
    assert policy.wait_s(history_of(1, *[True] * 50), 1) == 10
    assert policy.wait_s(history_of(90_000, *[False] * 9), 90_000) == 100_000
    assert (policy.retry_s(1), policy.retry_s(1e9)) == (10, 100_000)


def test_spam_that_always_changes_is_visited_no_more_than_the_median_page() -> None:
    """With `quality` only important pages are visited as often as they change."""
    policy = RevisitPolicy(QUALITY, BOUNDS)
    usual = history_of(1_000, *[True, False, False, False] * 5)
    for _ in range(KNOWN_FROM):
        policy.wait_s(usual, 1_000)
    assert policy.wait_s(ALWAYS, 100) >= 0.9 * policy.wait_s(usual, 1_000)
    assert policy.wait_s(ALWAYS, 100, is_important=True) < 100


@pytest.mark.parametrize(("hinted_s", "first_s"), [(1, 114), (500, 455), (1_000, 910), (1e9, 7_282)])
@pytest.mark.parametrize("rule", [CHANGE_RATE, FRESHNESS])
def test_a_site_s_word_moves_the_first_visits_by_a_factor_of_eight_at_most(
    rule: str, hinted_s: float, first_s: int
) -> None:
    """A page begins with the rate that its site names; `freshness` and `periodic` know better."""
    expected = first_s if rule == CHANGE_RATE else 1_000
    assert RevisitPolicy(rule, BOUNDS).wait_s((), 0, hinted_s=hinted_s) == expected
    assert RevisitPolicy(PERIODIC, BOUNDS).wait_s((), 0, hinted_s=hinted_s) == 1_000


def test_an_important_page_may_change_as_fast_as_its_site_says() -> None:
    """Down to the shortest wait."""
    assert RevisitPolicy(CHANGE_RATE, BOUNDS).wait_s((), 0, is_important=True, hinted_s=1) == 10
    assert RevisitPolicy(QUALITY, BOUNDS).wait_s((), 0, is_important=True, hinted_s=1) == 10


@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize("hinted_s", [1, 1e9])
def test_a_few_visits_outweigh_a_site_s_word(hinted_s: float, *, truth: bool) -> None:
    """After ten visits its wait is within a factor of two of what they say."""
    policy = RevisitPolicy(CHANGE_RATE, BOUNDS)
    history = history_of(1_000, *[truth, False] * 5)
    told, untold = policy.wait_s(history, 1_000, hinted_s=hinted_s), policy.wait_s(history, 1_000)
    assert untold / 2 <= told <= untold * 2


def test_a_lie_costs_no_more_than_the_median_page() -> None:
    """With `quality`, a page that its site says always changes has as many visits in a time as the median page."""
    policy = RevisitPolicy(QUALITY, BOUNDS)
    assert policy.wait_s((), 0, hinted_s=1) == 1_000, "nothing is known of the others"
    usual = history_of(2_000, *[True, False, False, False] * 5)
    for _ in range(KNOWN_FROM):
        median_s = policy.wait_s(usual, 2_000)
    liar: History = ()
    wait_s = policy.wait_s(liar, 0, hinted_s=1)
    for _ in range(5):
        assert wait_s >= 0.9 * median_s
        assert policy.soonest_s(wait_s) >= 0.9 * min(median_s, wait_s)
        liar = with_comparison(liar, wait_s, changed=False)
        wait_s = policy.wait_s(liar, wait_s, hinted_s=1)


def test_no_page_is_brought_forward_by_more_than_the_policy_bears() -> None:
    """To an eighth of its wait, to the shortest if it is important, and not at all in a fixed cycle."""
    policy = RevisitPolicy(CHANGE_RATE, BOUNDS)
    assert (policy.soonest_s(800), policy.soonest_s(40)) == (100, 10)
    assert policy.soonest_s(8_000, is_important=True) == 10
    assert RevisitPolicy(PERIODIC, BOUNDS).soonest_s(800) == 800
    assert RevisitPolicy(QUALITY, BOUNDS).soonest_s(5_000) == 1_000
    assert RevisitPolicy(QUALITY, BOUNDS).soonest_s(500) == 500
    assert RevisitPolicy(QUALITY, BOUNDS).soonest_s(5_000, is_important=True) == 10


def test_what_a_site_says_is_not_counted_as_what_pages_do() -> None:
    """Hints of some sites do not move the waits of others."""
    policies = [RevisitPolicy(QUALITY, BOUNDS, RateSample()) for _ in range(2)]
    for policy, hinted_s in zip(policies, (0.0, 1.0), strict=True):
        for _ in range(KNOWN_FROM):
            policy.wait_s(NEVER_CHANGED, 1_000, hinted_s=hinted_s)
    first, second = (policy.wait_s(ALWAYS, 100) for policy in policies)
    assert first == second


def test_with_freshness_a_page_beyond_the_price_is_visited_rarely() -> None:
    """A page that changes far too fast for the visits there are gets few of them, which show if that is so."""
    policy = RevisitPolicy(FRESHNESS, BOUNDS)
    steady = history_of(1_000, *[True, False] * 10)
    for _ in range(KNOWN_FROM):
        policy.wait_s(steady, 1_000)
    assert policy.wait_s(history_of(10, *[True] * 60), 10) == 8 * BOUNDS.usual_s
    assert policy.wait_s(steady, 1_000) == pytest.approx(1_000, rel=0.1)


def test_a_page_counts_the_same_however_often_it_is_visited() -> None:
    """Ten visits of a page, a second apart, weigh as much as one of another after ten seconds."""
    sample = RateSample()
    for _ in range(10):
        sample.add_rate(1.0, 1)
    sample.add_rate(1e-6, 11)
    assert sample.median() < 1e-5
    sample.add_rate(1.0, 2)
    assert sample.median() == pytest.approx(1.0, rel=0.2)
