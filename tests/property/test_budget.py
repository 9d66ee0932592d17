"""Budgets against what they must be for any crawl: counts by brute force, policies by their promises."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgpack
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bigcrawl.config import BudgetConfig
from bigcrawl.features.totals.fold import COUNTED, PageTotals
from bigcrawl.politeness.backoff_policy import scaled_delay_ms
from bigcrawl.scheduler.budgets.allowances import WITHHELD, EffectiveBudgets
from bigcrawl.scheduler.budgets.in_degrees import (
    BINS,
    EMPTY_COUNTS,
    LOWEST,
    CountsFormatError,
    InDegreeCounts,
    InDegreeRanks,
    bins_of,
    sum_published,
)
from bigcrawl.scheduler.budgets.other_policies import POLICIES, FixedBudgets
from bigcrawl.scheduler.budgets.policies import make_policy
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.queued_url import QueuedUrl
from bigcrawl.scheduler.rules.budget_rules import RuleBook, merge_rules, parse_rules, read_live_rules, rule_json
from tests.support.keys import pld_key
from tests.support.sizes import examples

if TYPE_CHECKING:
    from bigcrawl.scheduler.partition.tables import Tables

IN_DEGREES = st.one_of(
    st.integers(0, 3), st.integers(0, 100), st.integers(0, 5_000), st.integers((1 << 32) - 300, (1 << 32) - 1)
)
CRAWLS = st.lists(st.tuples(IN_DEGREES, st.integers(1, 300)), max_size=25).map(
    lambda pairs: np.repeat(
        np.array([in_degree for in_degree, _ in pairs], dtype=np.uint32), [plds for _, plds in pairs] or []
    )
)
CONFIGS = st.builds(
    lambda policy, base, more, top: BudgetConfig(policy, base, top, min(base + more, 1_000_000), {}),
    st.sampled_from(sorted(POLICIES)),
    st.integers(1, 1_000) | st.integers(1, 1_000_000),
    st.integers(0, 1_000_000),
    st.integers(1, 100) | st.integers(1, 100_000_000),
)
ASKED = st.lists(IN_DEGREES, max_size=40).map(lambda found: np.array(sorted(found), dtype=np.uint32))


def budgets(config: BudgetConfig, counts: InDegreeCounts, in_degrees: np.ndarray) -> np.ndarray:
    policy = make_policy(config, counts)
    assert policy is not None
    found = policy.budgets(np.zeros(len(in_degrees), dtype=np.uint64), in_degrees)
    assert found.dtype == np.uint32
    return found.astype(np.int64)


@given(CRAWLS, st.integers(1, 9), st.randoms(use_true_random=False))
def test_counts_do_not_depend_on_how_plds_are_split(crawl: np.ndarray, partitions: int, dice: object) -> None:
    """However many partitions, and whichever PLDs lie in them, their published sum is that of the crawl."""
    of_partition = np.array([dice.randrange(partitions) for _ in crawl], dtype=np.intp)  # type: ignore[attr-defined]
    parts = [InDegreeCounts.of(crawl[of_partition == at]) for at in range(partitions)]
    assert sum_published(part.to_bytes() for part in parts) == (InDegreeCounts.of(crawl), 0)
    added = EMPTY_COUNTS
    for part in parts:
        added = added + part
    assert added == InDegreeCounts.of(crawl)


@given(st.lists(st.lists(st.integers(0, 12), max_size=30), max_size=12))
def test_counts_that_move_along_are_those_counted_anew(batches: list[list[int]]) -> None:
    """Links arrive in batches, a PLD several times in one; the counts after each are those of all in-degrees."""
    in_degrees: dict[int, int] = {}
    counts = EMPTY_COUNTS
    for batch in batches:
        before, after = [], []
        for pld in batch:
            before.append(in_degrees.get(pld, 0))
            in_degrees[pld] = before[-1] + 1 + 40 * (pld == 0)
            after.append(in_degrees[pld])
        counts = counts.after_changes(np.array(before, dtype=np.uint32), np.array(after, dtype=np.uint32))
        assert counts == InDegreeCounts.of(np.array(list(in_degrees.values()), dtype=np.uint32))
        assert counts.total == len(in_degrees)


@given(CRAWLS, ASKED)
def test_the_error_of_a_rank_is_less_than_its_bin(crawl: np.ndarray, asked: np.ndarray) -> None:
    """The worst rank is never better than the true one, and off by fewer than the bin's PLDs; the likely one too.

    The true rank of an in-degree is the number of PLDs that have it or a higher one. Below 64 both are exact.
    """
    ranks = InDegreeRanks(InDegreeCounts.of(crawl))
    pointed_to = crawl[crawl > 0]
    worst, likely = ranks.worst_ranks(asked).tolist(), ranks.likely_ranks(asked).tolist()
    for at, in_degree in enumerate(asked.tolist()):
        true = max(int((pointed_to >= in_degree).sum()), 1)
        lowest, beyond = LOWEST[bins_of(asked[at : at + 1])[0]], LOWEST[bins_of(asked[at : at + 1])[0] + 1]
        of_bin = int(((pointed_to >= lowest) & (pointed_to < beyond)).sum())
        is_counted = bool((pointed_to == in_degree).any())
        assert true <= worst[at] <= true + of_bin - is_counted
        assert abs(likely[at] - true) <= max(of_bin, 1)
        assert 1 <= likely[at] <= worst[at]
        assert in_degree >= 64 or worst[at] == likely[at] == true


@given(st.integers(64, (1 << 32) - 1))
def test_a_wide_bin_spans_an_eighth_of_its_in_degree_at_most(in_degree: int) -> None:
    """The relative error of an in-degree that is told by its bin."""
    at = int(bins_of(np.array([in_degree], dtype=np.uint32))[0])
    assert LOWEST[at] <= in_degree < LOWEST[at + 1]
    assert (LOWEST[at + 1] - LOWEST[at]) * 8 <= in_degree


@given(CRAWLS, ASKED)
def test_a_rank_never_rises_with_the_in_degree(crawl: np.ndarray, asked: np.ndarray) -> None:
    """More that point to a PLD never make its rank worse."""
    ranks = InDegreeRanks(InDegreeCounts.of(crawl))
    assert (np.diff(ranks.worst_ranks(asked)) <= 0).all()
    assert (np.diff(ranks.likely_ranks(asked)) <= 0).all()


@settings(max_examples=examples(300))
@given(CONFIGS, CRAWLS, ASKED)
def test_budgets_keep_their_bounds_and_follow_the_in_degree(
    config: BudgetConfig, crawl: np.ndarray, asked: np.ndarray
) -> None:
    """Each policy: from base to maximum, or 0 where that is its point; monotone in the in-degree."""
    found = budgets(config, InDegreeCounts.of(crawl), asked)
    given_some = found[found > 0]
    assert config.policy == "popular-only" or len(given_some) == len(found)
    assert (given_some >= config.base).all()
    assert (given_some <= max(config.maximum, config.base)).all()
    steps = np.diff(found)
    assert (steps <= 0).all() if config.policy == "inverse" else (steps >= 0).all()


@settings(max_examples=examples(300))
@given(CONFIGS, CRAWLS, ASKED)
def test_star_gives_more_only_to_those_who_are_certainly_of_the_top(
    config: BudgetConfig, crawl: np.ndarray, asked: np.ndarray
) -> None:
    """Who gets more than the base is truly of the first ranks and of the best hundredth, and is vouched for."""
    config = config.replace(policy="star")
    pointed_to = crawl[crawl > 0]
    for in_degree, budget in zip(
        asked.tolist(), budgets(config, InDegreeCounts.of(crawl), asked).tolist(), strict=True
    ):
        if budget > config.base:
            true = int((pointed_to >= in_degree).sum())
            assert true <= min(config.top, len(pointed_to) // 100)
            assert budget <= config.base * in_degree


@given(CRAWLS)
def test_star_lets_no_more_rise_than_the_top_has_places(crawl: np.ndarray) -> None:
    """Of all PLDs of a crawl, at most a hundredth have more than the base: none of fewer than a hundred."""
    config = BudgetConfig("star", 10, 10_000, 10_000, {})
    found = budgets(config, InDegreeCounts.of(crawl), crawl)
    assert int((found > 10).sum()) <= min(len(crawl[crawl > 0]) // 100, 10_000)


@given(CRAWLS, ASKED)
def test_popular_only_holds_all_but_the_first_ranks(crawl: np.ndarray, asked: np.ndarray) -> None:
    """More than `top` PLDs never have a budget once more are known; who has one has what STAR gives."""
    config = BudgetConfig("popular-only", 10, 20, 10_000, {})
    counts = InDegreeCounts.of(crawl)
    pointed_to = crawl[crawl > 0]
    assert int((budgets(config, counts, pointed_to) > 0).sum()) <= 20
    found, star = budgets(config, counts, asked), budgets(config.replace(policy="star"), counts, asked)
    assert np.array_equal(found[found > 0], star[found > 0])


@given(st.binary(max_size=60) | CRAWLS.map(lambda crawl: InDegreeCounts.of(crawl).to_bytes()), st.data())
def test_damaged_counts_are_refused_or_counts(data: bytes, draw: st.DataObject) -> None:
    """No bytes, a published count with a byte changed among them, raise anything but the format's own error."""
    if data:
        at, byte = draw.draw(st.integers(0, len(data) - 1)), draw.draw(st.integers(0, 255))
        data = data[:at] + bytes((byte,)) + data[at + 1 :]
    try:
        counts = InDegreeCounts.from_bytes(data)
    except CountsFormatError:
        return
    assert counts.by_bin.shape == (BINS,)
    assert InDegreeCounts.from_bytes(counts.to_bytes()) == counts


@given(st.integers(0, 86_400_000), st.integers(0, 86_400_000), st.integers(0, 1_000_000), st.integers(1, 1_000_000))
def test_a_scaled_delay_keeps_floor_and_delay(delay_ms: int, floor_ms: int, budget: int, base: int) -> None:
    """Never above the delay, never below the floor or the delay, whichever is less; never rising with the budget."""
    found = scaled_delay_ms(delay_ms, floor_ms, budget, base)
    assert min(floor_ms, delay_ms) <= found <= delay_ms
    assert scaled_delay_ms(delay_ms, floor_ms, budget + 1, base) <= found
    assert budget > base or found == delay_ms


@given(st.integers(1, 100_000), st.integers(1, 100_000), st.integers(1, 100_000), st.integers(1, 1_000))
def test_a_host_is_done_with_any_budget_in_the_same_time(delay_ms: int, floor_ms: int, budget: int, base: int) -> None:
    """Above the floor URLs leave as fast as they enter: a turn's budget takes what the base takes, to a ms a URL."""
    assume(budget >= base)
    found = scaled_delay_ms(delay_ms, floor_ms, budget, base)
    if floor_ms < found < delay_ms:
        assert 0 <= budget * found - base * delay_ms < budget


# Rules: a small world of PLDs of two labels, and hosts below them.

HOSTS = [f"{prefix}{pld}" for pld in ("a.test", "b.test", "c.net") for prefix in ("", "www.", "x.www.")]
NAMES = [*HOSTS, "*.test", "*.a.test", "*.www.b.test", "re:/p1", "re:/p", "re:a\\.test"]
RULES = st.dictionaries(
    st.sampled_from(NAMES),
    st.dictionaries(st.sampled_from(["budget", "pages", "bytes", "depth"]), st.integers(0, 6)),
)
VISITS = st.lists(
    st.tuples(st.sampled_from(HOSTS), st.sampled_from(["/", "/p1", "/p2"]), st.integers(0, 6)), max_size=30
)


def pld_of(host: str) -> str:
    return ".".join(host.split(".")[-2:])


def expected_limit(rules: dict[str, dict[str, int]], limit: str, host: str, url: str) -> tuple[int, str] | None:
    """The rule of the docstring, name by name, without caches."""
    below = sorted((name for name in rules if name.startswith("*.") and host.endswith(name[1:])), key=len, reverse=True)
    for name in [host, pld_of(host), *below]:
        if limit in rules.get(name, {}):
            return rules[name][limit], name
    patterns = [(rules[name][limit], name) for name in rules if name[:3] == "re:" and limit in rules[name]]
    return min(
        (found for found in patterns if found[1][3:].replace("\\", "") in url),
        default=None,
    )


@settings(max_examples=examples(300))
@given(RULES, VISITS)
def test_a_limit_is_that_of_the_most_specific_rule(
    written: dict[str, dict[str, int]], visits: list[tuple[str, str, int]]
) -> None:
    """Whatever rules there are, each limit is the one found by going through the names one after the other."""
    book = RuleBook(merge_rules({}, parse_rules(written)), pld_of, pld_key)
    for host, path, _ in visits:
        url = f"http://{host}{path}"
        limits = book.for_url(host, url)
        found = {name: (limit.value, limit.rule) for name, limit in limits.items()}
        expected = ((name, expected_limit(written, name, host, url)) for name in ("budget", "pages", "bytes", "depth"))
        assert found == {name: limit for name, limit in expected if limit}


@settings(max_examples=examples(300))
@given(RULES, st.lists(VISITS, max_size=4))
def test_pages_are_met_exactly_over_batches(
    written: dict[str, dict[str, int]], batches: list[list[tuple[str, str, int]]]
) -> None:
    """Over any batches, an account's counted URLs never exceed its pages, and are short of them only when none waits.

    What passes once, counted, passes again; what is held was held by a limit; accounts have one budget each.
    """
    with TemporaryDirectory() as directory:
        tables = Partition.open(Path(directory), 1, PartitionLimits()).state.tables
        _let_batches_pass(written, batches, tables)


def _let_batches_pass(
    written: dict[str, dict[str, int]], batches: list[list[tuple[str, str, int]]], tables: Tables
) -> None:
    pages: dict[int, int] = {}
    limiting = [PageTotals().begin(tables, pld_of).limit]

    def look(body: bytes) -> tuple[str, int]:
        url, depth = msgpack.unpackb(body)
        return url, depth

    book = RuleBook(merge_rules({}, parse_rules(written)), pld_of, pld_key)
    budgets = EffectiveBudgets(FixedBudgets(BudgetConfig("fixed", 10, 1, 10, {}), EMPTY_COUNTS), book, look)
    for batch in batches:
        urls = [
            QueuedUrl(at, host, 0, 0, msgpack.packb([f"http://{host}{path}", depth]))
            for at, (host, path, depth) in enumerate(batch)
        ]
        plds = np.array([pld_key(pld_of(url.host)) for url in urls], dtype=np.uint64)
        in_degrees = np.zeros(len(urls), dtype=np.uint32)
        found = budgets.allow(urls, plds, in_degrees, limiting)
        counted = np.array([bool(url.flags & COUNTED) for url in found.urls], dtype=np.bool_)
        for url in (url for url in found.urls if url.flags & COUNTED):
            account = book.for_url(url.host, look(url.body)[0])["pages"].account
            pages[account] = pages.get(account, 0) + 1
        _, totals = tables["totals"].values(np.array([*pages], dtype=np.uint64))
        assert totals["pages"].tolist() == [*pages.values()]
        by_account = dict(zip(found.accounts.tolist(), found.budgets.tolist(), strict=True))
        for at, url in enumerate(urls):
            limits = book.for_url(url.host, look(url.body)[0])
            account, budget = int(found.accounts[at]), int(found.budgets[at])
            assert budget == by_account[account]
            too_deep = "depth" in limits and look(url.body)[1] > limits["depth"].value
            no_bytes = "bytes" in limits and limits["bytes"].value == 0
            no_pages = "pages" in limits and pages.get(limits["pages"].account, 0) >= limits["pages"].value
            if account == WITHHELD:
                assert budget == 0
                assert too_deep or no_bytes or no_pages
            else:
                assert budget == (limits["budget"].value if "budget" in limits else 10)
                assert not too_deep
                assert not no_bytes
                assert bool(counted[at]) == ("pages" in limits and budget > 0)
            if "pages" in limits:
                assert pages.get(limits["pages"].account, 0) <= limits["pages"].value
        again = [url for url in found.urls if url.flags & COUNTED]
        kept = budgets.allow(again, plds[counted], in_degrees[counted], limiting)
        assert np.array_equal(kept.accounts, found.accounts[counted])
        assert tables["totals"].values(np.array([*pages], dtype=np.uint64))[1]["pages"].tolist() == [*pages.values()]


@given(RULES)
def test_rules_survive_redis(written: dict[str, dict[str, int]]) -> None:
    """Stored as JSON by name and read again, rules are the same."""
    rules = parse_rules(written)
    assert read_live_rules({name.encode(): rule_json(rule) for name, rule in rules.items()}) == (rules, [])


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_policy_has_been_drawn(policy: str) -> None:
    """The strategy above knows all policies of the table, those added later too."""
    assert budgets(BudgetConfig(policy, 3, 5, 7, {}), EMPTY_COUNTS, np.array([2], dtype=np.uint32)).shape == (1,)
