"""A batch of URLs under policy and rules: who may pass, who is held, what is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgpack
import numpy as np
import pytest

from bigcrawl.config import read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.budgets.allowances import COUNTED, WITHHELD, Allowances, EffectiveBudgets, make_budgets
from bigcrawl.scheduler.budgets.in_degrees import EMPTY_COUNTS
from bigcrawl.scheduler.records.queued_url import UNCHECKED, QueuedUrl
from bigcrawl.scheduler.rules.budget_rules import BUDGET_LARGEST, merge_rules, parse_rules
from bigcrawl.scheduler.rules.rule_book import RuleBook
from bigcrawl.url.canonical import host_of
from bigcrawl.url.domain import PublicSuffixes
from tests.support.keys import pld_key, url_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SUFFIXES = PublicSuffixes.bundled()
B0 = 10


class Totals:
    """What was counted so far; remembers what was asked."""

    def __init__(self, pages: Mapping[int, int], sizes: Mapping[int, int]) -> None:
        self.pages, self.sizes = dict(pages), dict(sizes)
        self.asked: list[list[int]] = []

    def __call__(self, accounts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.asked.append(accounts.tolist())
        found = ([column.get(at, 0) for at in accounts.tolist()] for column in (self.pages, self.sizes))
        pages, sizes = (np.array(column, dtype=np.uint64) for column in found)
        return pages, sizes


class Ruled(NamedTuple):
    budgets: EffectiveBudgets
    totals: Totals


def look(body: bytes) -> tuple[str, int]:
    url, depth, _ = msgpack.unpackb(body)
    return url, depth


def made(
    rules: Mapping[str, Mapping[str, object]],
    *,
    policy: str = "fixed",
    pages: Mapping[int, int] | None = None,
    sizes: Mapping[int, int] | None = None,
) -> Ruled:
    book = RuleBook(merge_rules(parse_rules(rules), {}), SUFFIXES.pld, pld_key)
    config = read_config({"BIGCRAWL_BUDGET_POLICY": policy}).budget
    found = make_budgets(config, EMPTY_COUNTS, book, look)
    assert found is not None
    return Ruled(found, Totals(pages or {}, sizes or {}))


def urls(*texts: str, depth: int = 1, flags: int = 0) -> list[QueuedUrl]:
    return [
        QueuedUrl(url_key(text), host_of(text), 0, flags, msgpack.packb([text, depth, None], use_bin_type=True))
        for text in texts
    ]


def allow(ruled: Ruled, batch: Sequence[QueuedUrl]) -> Allowances:
    plds = np.array([pld_key(SUFFIXES.pld(url.host)) for url in batch], dtype=np.uint64)
    return ruled.budgets.allow(batch, plds, np.zeros(len(batch), dtype=np.uint32), ruled.totals)


def pairs(found: Allowances) -> list[tuple[int, int]]:
    return list(zip(found.accounts.tolist(), found.budgets.tolist(), strict=True))


A, B = pld_key("a.test"), pld_key("b.test")
HOST_A, HOST_X = pld_key("host www.a.test"), pld_key("host x.blog.test")


def test_without_rules_accounts_are_plds_with_the_policys_budget() -> None:
    """Nothing is counted, and no body and no total is looked at."""
    totals = Totals({}, {})
    book = RuleBook({}, SUFFIXES.pld, pld_key)
    budgets = make_budgets(read_config({}).budget, EMPTY_COUNTS, book, lambda body: pytest.fail("looked"))
    assert budgets is not None
    found = allow(Ruled(budgets, totals), urls("http://www.a.test/", "http://a.test/", "http://b.test/"))
    assert pairs(found) == [(A, B0), (A, B0), (B, B0)]
    assert not found.counted.any()
    assert len(found.counted_in) == len(totals.asked) == 0


def test_a_rules_budget_takes_the_place_of_the_policys() -> None:
    """For the PLD as a whole in its own account, for a host or a star's host in one apart."""
    budgets = made({"a.test": {"budget": 500}, "www.a.test": {"budget": 7}, "*.blog.test": {"budget": 3}})
    batch = urls("http://a.test/", "http://www.a.test/", "http://m.a.test/", "http://x.blog.test/", "http://b.test/")
    assert pairs(allow(budgets, batch)) == [(A, 500), (HOST_A, 7), (A, 500), (HOST_X, 3), (B, B0)]


def test_asked_by_pld_alone_the_rules_of_plds_count() -> None:
    """`budgets` is what a fold without rules asks: keys in any order, repeated, none at all."""
    budgets, _ = made({"a.test": {"budget": 500}, "c.test": {"budget": 0}, "www.b.test": {"budget": 7}})
    plds = np.array([B, A, pld_key("c.test"), A, 0, (1 << 64) - 1], dtype=np.uint64)
    found = budgets.budgets(plds, np.zeros(6, dtype=np.uint32))
    assert found.tolist() == [B0, 500, 0, 500, B0, B0]
    assert found.dtype == np.uint32
    assert budgets.budgets(plds[:0], np.zeros(0, dtype=np.uint32)).tolist() == []


def test_what_a_pattern_finds_has_a_budget_apart() -> None:
    """The calendar of each PLD has its own account; its other URLs keep the PLD's."""
    budgets = made({"re:/calendar/": {"budget": 1}})
    batch = urls(
        "http://a.test/calendar/1", "http://a.test/", "http://www.a.test/calendar/2", "http://b.test/calendar/1"
    )
    calendar_a, calendar_b = pld_key("re:/calendar/ a.test"), pld_key("re:/calendar/ b.test")
    assert pairs(allow(budgets, batch)) == [(calendar_a, 1), (A, B0), (calendar_a, 1), (calendar_b, 1)]


def test_a_budget_of_0_holds() -> None:
    """The account keeps its name, so that what waits for it stays in order when it is let go."""
    assert pairs(allow(made({"a.test": {"budget": 0}}), urls("http://a.test/"))) == [(A, 0)]


def test_what_lies_too_deep_is_held_and_keeps_nobody_waiting() -> None:
    """As deep as the limit passes; deeper ones are held in an account that is not their PLD's."""
    budgets = made({"a.test": {"depth": 2}})
    batch = [
        *urls("http://a.test/2", depth=2),
        *urls("http://a.test/3", depth=3),
        *urls("http://a.test/0", depth=0),
        *urls("http://b.test/", depth=9),
    ]
    assert pairs(allow(budgets, batch)) == [(A, B0), (WITHHELD, 0), (A, B0), (B, B0)]


def test_pages_are_counted_in_the_order_of_arrival_and_then_held() -> None:
    """Those that were let pass before count too; the limit is met exactly."""
    budgets = made({"a.test": {"pages": 5}}, pages={A: 3})
    found = allow(budgets, urls(*(f"http://a.test/{at}" for at in range(4)), "http://b.test/"))
    assert pairs(found) == [(A, B0), (A, B0), (WITHHELD, 0), (WITHHELD, 0), (B, B0)]
    assert found.counted.tolist() == [True, True, False, False, False]
    assert found.counted_in.tolist() == [A, A]


def test_a_url_is_counted_once() -> None:
    """One that was counted, and then waited over budget, passes even when the total is reached meanwhile."""
    budgets = made({"a.test": {"pages": 5}}, pages={A: 5})
    batch = urls("http://a.test/old", flags=COUNTED | UNCHECKED) + urls("http://a.test/new", flags=UNCHECKED)
    found = allow(budgets, batch)
    assert pairs(found) == [(A, B0), (WITHHELD, 0)]
    assert not found.counted.any()


def test_a_total_that_was_lowered_or_reached_lets_nothing_new_pass() -> None:
    """More was counted than the rule now allows: nothing breaks, all is held."""
    for limit in (0, 3):
        budgets = made({"a.test": {"pages": limit}}, pages={A: 9})
        assert pairs(allow(budgets, urls("http://a.test/"))) == [(WITHHELD, 0)]


def test_bytes_hold_what_comes_after_they_were_reached() -> None:
    """One byte short of the limit passes, the limit holds."""
    for fetched, expected in ((99, (A, B0)), (100, (WITHHELD, 0)), (10**15, (WITHHELD, 0))):
        budgets = made({"a.test": {"bytes": 100}}, sizes={A: fetched})
        found = allow(budgets, urls("http://a.test/"))
        assert pairs(found) == [expected]
        assert not found.counted.any()


def test_what_no_budget_lets_pass_is_not_counted() -> None:
    """A URL that is held by one limit takes no page of another."""
    budgets = made({"a.test": {"budget": 0, "pages": 5}, "b.test": {"depth": 0, "pages": 5}})
    found = allow(budgets, urls("http://a.test/", "http://b.test/"))
    assert found.budgets.tolist() == [0, 0]
    assert not found.counted.any()


def test_the_totals_are_asked_once_for_all_that_a_batch_needs() -> None:
    """One look-up a batch, each account once; limits of two rules keep their own accounts."""
    rules = {"a.test": {"bytes": 9}, "www.a.test": {"pages": 2}, "b.test": {"budget": 5}}
    totals = Totals({HOST_A: 1}, {A: 8})
    book = RuleBook(parse_rules(rules), SUFFIXES.pld, pld_key)
    budgets = make_budgets(read_config({}).budget, EMPTY_COUNTS, book, look)
    assert budgets is not None
    found = allow(
        Ruled(budgets, totals), urls("http://www.a.test/1", "http://b.test/", "http://www.a.test/2", "http://a.test/")
    )
    assert totals.asked == [sorted([A, HOST_A])]
    assert pairs(found) == [(A, B0), (B, 5), (WITHHELD, 0), (A, B0)]
    assert found.counted_in.tolist() == [HOST_A]


def test_rules_hold_without_any_policy_too() -> None:
    """With the policy "none" all others have the largest budget; without rules there are no budgets at all."""
    budgets = made({"a.test": {"budget": 0}}, policy="none")
    assert pairs(allow(budgets, urls("http://a.test/", "http://b.test/"))) == [(A, 0), (B, BUDGET_LARGEST)]
    config = read_config({"BIGCRAWL_BUDGET_POLICY": "none"}).budget
    assert make_budgets(config, EMPTY_COUNTS, RuleBook({}, SUFFIXES.pld, pld_key), look) is None


def test_what_the_caller_handed_in_is_not_changed() -> None:
    """Arrays of PLDs and in-degrees belong to the fold."""
    budgets, totals = made({"www.a.test": {"budget": 7}})
    plds = np.array([A], dtype=np.uint64)
    found = budgets.allow(urls("http://www.a.test/"), plds, np.zeros(1, dtype=np.uint32), totals)
    assert pairs(found) == [(HOST_A, 7)]
    assert plds.tolist() == [A]


def test_an_empty_batch_is_allowed() -> None:
    """No URLs, with rules and without."""
    for rules in ({}, {"re:x": {"pages": 1}}):
        assert pairs(allow(made(rules), [])) == []


def test_wrong_settings_are_said_here_too() -> None:
    """What `make_policy` refuses, rules or not."""
    config = read_config({"BIGCRAWL_BUDGET_POLICY": "popular"}).budget
    with pytest.raises(ConfigError, match="did you mean popular-only"):
        make_budgets(config, EMPTY_COUNTS, RuleBook({}, SUFFIXES.pld, pld_key), look)
