"""Budget policies, by name and by import path, and the delays that follow budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.config import BudgetConfig, read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.politeness.backoff_policy import DelayPolicy, host_delay_ms, scaled_delay_ms
from bigcrawl.scheduler.budgets.in_degrees import EMPTY_COUNTS, InDegreeCounts
from bigcrawl.scheduler.budgets.other_policies import POLICIES
from bigcrawl.scheduler.budgets.policies import make_policy
from bigcrawl.scheduler.rules.budget_rules import BUDGET_LARGEST

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULTS = read_config({}).budget
HERE = "tests.unit.scheduler.budgets.test_policies"


def array(*in_degrees: int) -> np.ndarray:
    return np.array(in_degrees, dtype=np.uint32)


def budgets(config: BudgetConfig, counts: InDegreeCounts, *in_degrees: int) -> list[int]:
    policy = make_policy(config, counts)
    assert policy is not None
    found = policy.budgets(np.arange(len(in_degrees), dtype=np.uint64), array(*in_degrees))
    assert found.dtype == np.uint32
    assert found.shape == (len(in_degrees),)
    return found.tolist()


def counts(*in_degrees: int) -> InDegreeCounts:
    return InDegreeCounts.of(array(*in_degrees))


def web(plds: int) -> InDegreeCounts:
    """In-degrees by the power law of the web's PLDs: the k-th has plds / k."""
    return InDegreeCounts.of((plds // np.arange(1, plds + 1)).astype(np.uint32))


class Halves:
    """A user's policy."""

    def __init__(self, config: BudgetConfig, counts: InDegreeCounts) -> None:
        self.base = config.base

    def budgets(self, plds: np.ndarray, in_degrees: np.ndarray) -> np.ndarray:
        return np.where(plds % 2 == 0, self.base, 1 << 40)


class Answers:
    """A policy that answers what a test wants."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def budgets(self, plds: np.ndarray, in_degrees: np.ndarray) -> object:
        return self.answer if len(plds) else np.zeros(0, dtype=np.uint32)


def too_few(config: BudgetConfig, counts: InDegreeCounts) -> Answers:
    return Answers([10, 10])


def owed(config: BudgetConfig, counts: InDegreeCounts) -> Answers:
    return Answers([-1] * 6)


def fractions(config: BudgetConfig, counts: InDegreeCounts) -> Answers:
    return Answers([0.5] * 6)


def nothing(config: BudgetConfig, counts: InDegreeCounts) -> Answers:
    return Answers(None)


def refuses(config: BudgetConfig, counts: InDegreeCounts) -> Answers:
    raise ValueError("not today")


def test_star_in_a_large_crawl_is_irlbots() -> None:
    """From a million PLDs on: the first 10,000 linearly from the base to the maximum by rank, the base for the rest.

    The ranks that the counts give differ from the true ones by a hundredth of the top at most; of the last bin, which
    holds rank 10,000, it cannot be told who is of the top.
    """
    rank = np.arange(1, 2_000_001)
    in_degrees = (4_000_000_000 // rank).astype(np.uint32)
    policy = make_policy(DEFAULTS, InDegreeCounts.of(in_degrees))
    assert policy is not None
    found = policy.budgets(rank.astype(np.uint64), in_degrees).astype(np.int64)
    line = 10 + 9_990 * (10_000 - rank[:8_800]) / 9_999
    assert np.abs(found[:8_800] - line).max() < 100
    assert found[0] == 10_000
    assert set(found[10_000:].tolist()) == {10}


def test_in_a_young_crawl_all_have_the_base() -> None:
    """Nothing counted, all in-degrees 0 or 1, or fewer than a hundred PLDs: nobody is of the top."""
    assert budgets(DEFAULTS, EMPTY_COUNTS, 0, 1, 50) == [10, 10, 10]
    assert budgets(DEFAULTS, counts(*[1] * 100_000), 0, 1) == [10, 10]
    assert budgets(DEFAULTS, counts(*range(1, 100)), 1, 50, 99) == [10, 10, 10]


def test_links_from_few_win_few() -> None:
    """One more PLD that points to it wins a PLD no more than its own budget, whatever its rank."""
    crawl = counts(*[1] * 100_000, *[2] * 100, *[3] * 20)
    assert budgets(DEFAULTS, crawl, 1, 2, 3) == [10, 20, 30]


def test_a_farm_of_equals_is_not_of_the_top() -> None:
    """PLDs that all point to each other share a rank: with more of them than the top has places, they have none."""
    farm = counts(*[60] * 61, *range(1, 60), *[1] * 4_000)
    assert budgets(DEFAULTS, farm, 60) == [10]
    assert budgets(DEFAULTS, farm + counts(80), 80, 60) == [800, 10]


def test_the_top_is_the_best_hundredth_until_it_is_full() -> None:
    """In a crawl of 20,000 PLDs those before rank 200 get more, the later ones what all get."""
    found = budgets(DEFAULTS, web(20_000), *(20_000 // rank for rank in (1, 50, 150, 200, 210, 20_000)))
    assert found[0] == 10_000
    assert found[0] > found[1] > found[2] > 10
    assert found[4:] == [10, 10]


def test_in_degrees_newer_than_the_counts_get_a_budget() -> None:
    """A PLD that has passed all that were counted is the first."""
    assert budgets(DEFAULTS, web(20_000), 4_000_000_000) == [10_000]


def test_fixed_is_the_same_for_all() -> None:
    assert budgets(DEFAULTS.replace(policy="fixed", base=7, maximum=1), web(20_000), 0, 1, 20_000) == [7, 7, 7]


def test_proportional_and_inverse_lie_between_base_and_maximum() -> None:
    """Each PLD that points to one is worth the base; or divides the maximum."""
    asked = (0, 1, 3, 500, 999, 1_001, (1 << 32) - 1)
    assert budgets(DEFAULTS.replace(policy="proportional"), EMPTY_COUNTS, *asked) == [
        10, 10, 30, 5_000, 9_990, 10_000, 10_000,
    ]  # fmt: skip
    assert budgets(DEFAULTS.replace(policy="inverse"), EMPTY_COUNTS, *asked) == [
        10_000, 10_000, 3_333, 20, 10, 10, 10,
    ]  # fmt: skip


def test_popular_only_holds_the_rest() -> None:
    """Of those before the top's last rank all that STAR gives, of the rest nothing."""
    config = DEFAULTS.replace(policy="popular-only", top=1_000)
    crawl = web(200_000)
    asked = [200_000 // rank for rank in (1, 100, 900, 1_500, 200_000)]
    star = budgets(config.replace(policy="star"), crawl, *asked)
    assert budgets(config, crawl, *asked) == [*star[:3], 0, 0]
    assert budgets(config, crawl, 0) == [0]


def test_popular_only_begins_with_everybody() -> None:
    """While fewer PLDs are known than the top has places, all are popular: a crawl gets off the ground."""
    config = DEFAULTS.replace(policy="popular-only")
    assert budgets(config, EMPTY_COUNTS, 0) == [10]
    assert budgets(config, counts(*[1] * 9_999), 0, 1) == [10, 10]
    assert budgets(config, counts(*[1] * 10_001), 0, 1) == [0, 0]


def test_none_is_no_policy() -> None:
    """Without budgets there is nothing to ask."""
    assert make_policy(DEFAULTS.replace(policy="none"), EMPTY_COUNTS) is None


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_answers_an_empty_batch(name: str) -> None:
    """Steps without URLs ask for none."""
    assert budgets(DEFAULTS.replace(policy=name), web(20_000)) == []


def test_a_policy_of_ones_own_is_found_by_its_path() -> None:
    """It is made of settings and counts; what it gives beyond the largest budget counts as that."""
    assert budgets(DEFAULTS.replace(policy=f"{HERE}.Halves"), EMPTY_COUNTS, 5, 5, 5) == [10, BUDGET_LARGEST, 10]


@pytest.mark.parametrize(
    ("policy", "parts"),
    [
        ("sta", ["'sta'", "did you mean star?", "fixed, proportional", "my.module.Policy"]),
        ("", ["''", "must be one of star"]),
        ("no.such.module", ["no.such.module", "cannot be imported", "ModuleNotFoundError"]),
        (f"{HERE}.Missing", ["cannot be imported", "Missing"]),
        (f"{HERE}.HERE", ["a str", "must be a class or function"]),
        (f"{HERE}.refuses", ["cannot be constructed from (BudgetConfig, InDegreeCounts)", "not today"]),
        (f"{HERE}.too_few", ["returned array([10, 10]) for 6 PLDs", "numpy.full(len(plds), 10)"]),
        (f"{HERE}.owed", ["non-negative whole numbers"]),
        (f"{HERE}.fractions", ["non-negative whole numbers"]),
        (f"{HERE}.nothing", ["returned array(None"]),
        (f"{HERE}.Answers", ["cannot be constructed from"]),
    ],
)
def test_a_wrong_policy_is_said_with_the_remedy(policy: str, parts: Sequence[str]) -> None:
    """An unknown name, a path that leads nowhere, and answers that are no budgets end the start."""
    with pytest.raises(ConfigError) as caught:
        make_policy(DEFAULTS.replace(policy=policy), EMPTY_COUNTS)
    assert str(caught.value).startswith("BIGCRAWL_BUDGET_POLICY ")
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("policy", ["star", "proportional", "inverse", "popular-only"])
def test_a_maximum_below_the_base_is_refused(policy: str) -> None:
    """Where both matter, they may not contradict each other; equal is allowed."""
    with pytest.raises(ConfigError, match="BIGCRAWL_BUDGET_MAX is 9; must be at least BIGCRAWL_BUDGET, which is 10"):
        make_policy(DEFAULTS.replace(policy=policy, maximum=9), EMPTY_COUNTS)
    assert budgets(DEFAULTS.replace(policy=policy, maximum=10), EMPTY_COUNTS, 1) == [10]


def test_settings_become_a_policy() -> None:
    """The settings as a user writes them reach the policy."""
    config = read_config({"BIGCRAWL_BUDGET_POLICY": "proportional", "BIGCRAWL_BUDGET": "4", "BIGCRAWL_BUDGET_MAX": 9})
    assert budgets(config.budget, EMPTY_COUNTS, 1, 2, 3) == [4, 8, 9]


@pytest.mark.parametrize("raw", ["[]", "", "{", 3, {"a.test": 5}, {1: {}}, '{"a.test": "x"}'])
def test_rules_that_are_no_table_are_refused(raw: object) -> None:
    """BIGCRAWL_BUDGET_RULES is a table of tables, or its JSON."""
    with pytest.raises(ConfigError, match=r"BIGCRAWL_BUDGET_RULES is .*must be a table of tables"):
        read_config({"BIGCRAWL_BUDGET_RULES": raw})


def test_rules_come_as_a_table_or_as_json() -> None:
    """settings.py has a table; the command line brings its JSON."""
    table = {"a.test": {"budget": 5}}
    assert read_config({"BIGCRAWL_BUDGET_RULES": table}).budget.rules == table
    assert read_config({"BIGCRAWL_BUDGET_RULES": '{"a.test": {"budget": 5}}'}).budget.rules == table
    assert read_config({}).budget.rules == {}


@pytest.mark.parametrize(
    ("delay", "floor", "floor_ms"), [(2, None, 2_000), (2, 0, 2_000), (2, 0.5, 500), (2, 5, 2_000), (0, 1, 0)]
)
def test_a_floor_that_is_not_set_scales_nothing(delay: float, floor: float | None, floor_ms: int) -> None:
    """Unset or 0, and above the delay itself, the floor is the delay."""
    hosts = read_config({"BIGCRAWL_HOST_DELAY": delay, "BIGCRAWL_HOST_DELAY_MIN": floor}).politeness
    assert (hosts.host_delay_ms, hosts.host_delay_min_ms) == (delay * 1000, floor_ms)
    servers = read_config({"BIGCRAWL_SERVER_DELAY": delay, "BIGCRAWL_SERVER_DELAY_MIN": floor}).politeness
    assert (servers.server_delay_ms, servers.server_delay_min_ms) == (delay * 1000, floor_ms)


@pytest.mark.parametrize(
    ("budget", "delay_ms"),
    [(0, 40_000), (1, 40_000), (10, 40_000), (20, 20_000), (30, 13_334), (395, 1_013), (400, 1_000), (10_000, 1_000)],
)
def test_a_larger_budget_shortens_the_delay_down_to_the_floor(budget: float, delay_ms: int) -> None:
    """IRLbot's 40 s for the base of 10: inversely proportional, rounded up."""
    assert scaled_delay_ms(40_000, 1_000, budget, 10) == delay_ms


def test_by_default_no_delay_is_scaled() -> None:
    """With the default settings every host and every server has the delay that is set."""
    policy = read_config({}).politeness
    for budget in (0, 10, 10_000, BUDGET_LARGEST):
        assert scaled_delay_ms(policy.host_delay_ms, policy.host_delay_min_ms, budget, 10) == 1_000
        assert scaled_delay_ms(policy.server_delay_ms, policy.server_delay_min_ms, budget, 10) == 500


def test_what_robots_txt_asks_for_is_kept_whatever_the_budget() -> None:
    """A scaled delay takes the place of the minimum, and the largest reason to wait still wins."""
    scaled = DelayPolicy(minimum_ms=scaled_delay_ms(40_000, 1_000, 10_000, 10))
    assert host_delay_ms(scaled, crawl_delay_ms=15_000, download_ms=0) == 15_000
    assert host_delay_ms(scaled, crawl_delay_ms=None, download_ms=0) == 1_000
