"""A batch of URLs under policy and rules: who may pass, who is held, what is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgpack
import numpy as np
import pytest

from bigcrawl.config import read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.budgets.allowances import WITHHELD, Allowances, BoundUrl, EffectiveBudgets, make_budgets
from bigcrawl.scheduler.budgets.in_degrees import EMPTY_COUNTS
from bigcrawl.scheduler.records.queued_url import UNCHECKED, QueuedUrl
from bigcrawl.scheduler.rules.budget_rules import BUDGET_LARGEST, RuleBook, merge_rules, parse_rules
from bigcrawl.url.canonical import host_of
from bigcrawl.url.domain import PublicSuffixes
from tests.support.keys import pld_key, url_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl.scheduler.budgets.allowances import Limiting

SUFFIXES = PublicSuffixes.bundled()
B0 = 10


def look(body: bytes) -> tuple[str, int]:
    url, depth, _ = msgpack.unpackb(body)
    return url, depth


def made(rules: Mapping[str, Mapping[str, object]], *, policy: str = "fixed") -> EffectiveBudgets:
    book = RuleBook(merge_rules(parse_rules(rules), {}), SUFFIXES.pld, pld_key)
    found = make_budgets(read_config({"BIGCRAWL_BUDGET_POLICY": policy}).budget, EMPTY_COUNTS, book, look)
    assert found is not None
    return found


def urls(*texts: str, depth: int = 1) -> list[QueuedUrl]:
    return [
        QueuedUrl(url_key(text), host_of(text), 0, 0, msgpack.packb([text, depth, None], use_bin_type=True))
        for text in texts
    ]


def allow(budgets: EffectiveBudgets, batch: Sequence[QueuedUrl], *limiting: Limiting) -> Allowances:
    plds = np.array([pld_key(SUFFIXES.pld(url.host)) for url in batch], dtype=np.uint64)
    return budgets.allow(batch, plds, np.zeros(len(batch), dtype=np.uint32), limiting)


def pairs(found: Allowances) -> list[tuple[int, int]]:
    return list(zip(found.accounts.tolist(), found.budgets.tolist(), strict=True))


A, B = pld_key("a.test"), pld_key("b.test")
HOST_A, HOST_X = pld_key("host www.a.test"), pld_key("host x.blog.test")


def test_without_rules_accounts_are_plds_with_the_policys_budget() -> None:
    """No body is looked at, and no feature is asked."""
    book = RuleBook({}, SUFFIXES.pld, pld_key)
    budgets = make_budgets(read_config({}).budget, EMPTY_COUNTS, book, lambda body: pytest.fail("looked"))
    assert budgets is not None
    batch = urls("http://www.a.test/", "http://a.test/", "http://b.test/")
    found = allow(budgets, batch, lambda bound: pytest.fail("asked"))
    assert pairs(found) == [(A, B0), (A, B0), (B, B0)]
    assert found.urls is batch


def test_a_rules_budget_takes_the_place_of_the_policys() -> None:
    """For the PLD as a whole in its own account, for a host or a star's host in one apart."""
    budgets = made({"a.test": {"budget": 500}, "www.a.test": {"budget": 7}, "*.blog.test": {"budget": 3}})
    batch = urls("http://a.test/", "http://www.a.test/", "http://m.a.test/", "http://x.blog.test/", "http://b.test/")
    assert pairs(allow(budgets, batch)) == [(A, 500), (HOST_A, 7), (A, 500), (HOST_X, 3), (B, B0)]


def test_asked_by_pld_alone_the_rules_of_plds_count() -> None:
    """`budgets` is what a fold without rules asks: keys in any order, repeated, none at all."""
    budgets = made({"a.test": {"budget": 500}, "c.test": {"budget": 0}, "www.b.test": {"budget": 7}})
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


def test_features_limit_what_nothing_has_withheld_yet() -> None:
    """One after the other: each sees what those before it let pass, and its flags go to the queue with the URL."""
    seen: list[list[tuple[str, int]]] = []

    def first(bound: Sequence[BoundUrl]) -> None:
        seen.append([(one.url.host, one.budget) for one in bound])
        bound[0].withhold()
        bound[1].flag(UNCHECKED)

    def second(bound: Sequence[BoundUrl]) -> None:
        seen.append([(one.url.host, one.url.flags) for one in bound])

    def third(bound: Sequence[BoundUrl]) -> None:
        for one in bound:
            one.withhold()

    budgets = made({"a.test": {"depth": 0}, "*": {"depth": 5}, "www.d.test": {"budget": 7}})
    batch = urls("http://a.test/", "http://b.test/", "http://c.test/", "http://www.d.test/")
    found = allow(budgets, batch, first, second, third, lambda bound: pytest.fail("asked"))
    assert seen == [[("b.test", B0), ("c.test", B0), ("www.d.test", 7)], [("c.test", UNCHECKED), ("www.d.test", 0)]]
    assert pairs(found) == [(WITHHELD, 0)] * 4
    assert [url.flags for url in found.urls] == [0, 0, UNCHECKED, 0]
    assert [url.key for url in found.urls] == [url.key for url in batch]


def test_rules_hold_without_any_policy_too() -> None:
    """With the policy "none" all others have the largest budget; without rules there are no budgets at all."""
    budgets = made({"a.test": {"budget": 0}}, policy="none")
    assert pairs(allow(budgets, urls("http://a.test/", "http://b.test/"))) == [(A, 0), (B, BUDGET_LARGEST)]
    config = read_config({"BIGCRAWL_BUDGET_POLICY": "none"}).budget
    assert make_budgets(config, EMPTY_COUNTS, RuleBook({}, SUFFIXES.pld, pld_key), look) is None


def test_what_the_caller_handed_in_is_not_changed() -> None:
    """Arrays of PLDs and in-degrees belong to the fold."""
    budgets = made({"www.a.test": {"budget": 7}})
    plds = np.array([A], dtype=np.uint64)
    found = budgets.allow(urls("http://www.a.test/"), plds, np.zeros(1, dtype=np.uint32))
    assert pairs(found) == [(HOST_A, 7)]
    assert plds.tolist() == [A]


def test_an_empty_batch_is_allowed() -> None:
    """No URLs, with rules and without."""
    for rules in ({}, {"re:x": {"budget": 1}}):
        assert pairs(allow(made(rules), [])) == []


def test_wrong_settings_are_said_here_too() -> None:
    """What `make_policy` refuses, rules or not."""
    config = read_config({"BIGCRAWL_BUDGET_POLICY": "popular"}).budget
    with pytest.raises(ConfigError, match="did you mean popular-only"):
        make_budgets(config, EMPTY_COUNTS, RuleBook({}, SUFFIXES.pld, pld_key), look)
