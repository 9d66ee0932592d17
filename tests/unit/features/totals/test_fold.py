"""Totals of pages and bytes in a partition: what they count, who is held for them, and what an import brings."""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgpack
import numpy as np
import pytest

from bigcrawl.config import read_config
from bigcrawl.features.totals.fold import COUNTED, TOTAL, PageTotals
from bigcrawl.features.totals.page import pack_fetched
from bigcrawl.scheduler.budgets.allowances import WITHHELD, Allowances, EffectiveBudgets, make_budgets
from bigcrawl.scheduler.budgets.in_degrees import EMPTY_COUNTS
from bigcrawl.scheduler.partition.fold.imported_rows import pack_rows
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.queued_url import UNCHECKED, QueuedUrl
from bigcrawl.scheduler.rules.budget_rules import RuleBook, parse_rules
from bigcrawl.url.canonical import host_of
from bigcrawl.url.domain import PublicSuffixes
from tests.support.keys import pld_key, url_key
from tests.support.worlds.partition_world import PartitionWorld, is_withheld, make_url, pld_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


LIMITS = PartitionLimits(host_hot_max=10_000, host_hot_low=10_000, features=(PageTotals(),))
SUFFIXES = PublicSuffixes.bundled()
B0 = 10
NOTHING: Mapping[int, int] = MappingProxyType({})
A, B = pld_key("a.test"), pld_key("b.test")
HOST_A = pld_key("host www.a.test")

Rules = dict[str, dict[str, object]]


def made(rules: Mapping[str, Mapping[str, object]], policy: str = "fixed") -> EffectiveBudgets:
    book = RuleBook(parse_rules(rules), SUFFIXES.pld, pld_key)
    config = read_config({"BIGCRAWL_BUDGET_POLICY": policy}).budget
    found = make_budgets(config, EMPTY_COUNTS, book, msgpack.unpackb)
    assert found is not None
    return found


class Trial:
    """Tables with some totals, and URLs that ask whether they may pass."""

    def __init__(self, directory: Path, pages: Mapping[int, int] = NOTHING, sizes: Mapping[int, int] = NOTHING) -> None:
        self.tables = Partition.open(directory, 1, LIMITS).state.tables.fork()
        self.part = PageTotals().begin(self.tables, pld_of)
        accounts = np.array(sorted({*pages, *sizes}), dtype=np.uint64)
        rows = [(pages.get(at, 0), sizes.get(at, 0)) for at in accounts.tolist()]
        table = self.tables["totals"]
        self.tables.commit(table, table.put(accounts, np.array(rows, dtype=TOTAL)))

    def allow(self, rules: Rules, batch: Sequence[QueuedUrl]) -> Allowances:
        plds = np.array([pld_key(SUFFIXES.pld(url.host)) for url in batch], dtype=np.uint64)
        return made(rules).allow(batch, plds, np.zeros(len(batch), dtype=np.uint32), [self.part.limit])

    def totals(self, *accounts: int) -> list[tuple[int, int]]:
        """Pages and bytes."""
        found: list[tuple[int, int]] = self.tables["totals"].values(np.array(accounts, dtype=np.uint64))[1].tolist()
        return found


def urls(*texts: str, depth: int = 1, flags: int = 0) -> list[QueuedUrl]:
    return [QueuedUrl(url_key(text), host_of(text), 0, flags, msgpack.packb([text, depth])) for text in texts]


def pairs(found: Allowances) -> list[tuple[int, int]]:
    return list(zip(found.accounts.tolist(), found.budgets.tolist(), strict=True))


def counted(found: Allowances) -> list[bool]:
    return [bool(url.flags & COUNTED) for url in found.urls]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "p0007"


def test_pages_are_counted_in_the_order_of_arrival_and_then_held(directory: Path) -> None:
    """Those that were let pass before count too; the limit is met exactly."""
    trial = Trial(directory, pages={A: 3})
    batch = urls(*(f"http://a.test/{at}" for at in range(4)), "http://b.test/")
    found = trial.allow({"a.test": {"pages": 5}}, batch)
    assert pairs(found) == [(A, B0), (A, B0), (WITHHELD, 0), (WITHHELD, 0), (B, B0)]
    assert counted(found) == [True, True, False, False, False]
    assert trial.totals(A, B) == [(5, 0), (0, 0)]


def test_a_url_is_counted_once(directory: Path) -> None:
    """One that was counted, and then waited over budget, passes even when the total is reached meanwhile."""
    trial = Trial(directory, pages={A: 5})
    batch = urls("http://a.test/old", flags=COUNTED | UNCHECKED) + urls("http://a.test/new", flags=UNCHECKED)
    found = trial.allow({"a.test": {"pages": 5}}, batch)
    assert pairs(found) == [(A, B0), (WITHHELD, 0)]
    assert (counted(found), trial.totals(A)) == ([True, False], [(5, 0)])


def test_a_total_that_was_lowered_or_reached_lets_nothing_new_pass(directory: Path) -> None:
    """More was counted than the rule now allows: nothing breaks, all is held."""
    trial = Trial(directory, pages={A: 9})
    for limit in (0, 3):
        assert pairs(trial.allow({"a.test": {"pages": limit}}, urls("http://a.test/"))) == [(WITHHELD, 0)]
    assert trial.totals(A) == [(9, 0)]


@pytest.mark.parametrize(("fetched", "passes"), [(99, True), (100, False), (10**15, False)])
def test_bytes_hold_what_comes_after_they_were_reached(directory: Path, fetched: int, passes: bool) -> None:
    """One byte short of the limit passes, the limit holds."""
    found = Trial(directory, sizes={A: fetched}).allow({"a.test": {"bytes": 100}}, urls("http://a.test/"))
    assert pairs(found) == [(A, B0) if passes else (WITHHELD, 0)]
    assert counted(found) == [False]


def test_what_no_budget_lets_pass_is_not_counted(directory: Path) -> None:
    """A URL that is held by one limit takes no page of another."""
    trial = Trial(directory)
    rules: Rules = {"a.test": {"budget": 0, "pages": 5}, "b.test": {"depth": 0, "pages": 5}}
    found = trial.allow(rules, urls("http://a.test/", "http://b.test/"))
    assert (found.budgets.tolist(), counted(found)) == ([0, 0], [False, False])
    assert trial.totals(A, B) == [(0, 0), (0, 0)]


def test_limits_of_two_rules_keep_their_own_accounts(directory: Path) -> None:
    trial = Trial(directory, pages={HOST_A: 1}, sizes={A: 8})
    rules: Rules = {"a.test": {"bytes": 9}, "www.a.test": {"pages": 2}, "b.test": {"budget": 5}}
    batch = urls("http://www.a.test/1", "http://b.test/", "http://www.a.test/2", "http://a.test/")
    found = trial.allow(rules, batch)
    assert pairs(found) == [(A, B0), (B, 5), (WITHHELD, 0), (A, B0)]
    assert counted(found) == [True, False, False, False]
    assert trial.totals(HOST_A, A) == [(2, 0), (0, 8)]


def test_accounts_other_than_plds_have_budgets_and_totals(directory: Path) -> None:
    """Hosts of one PLD may count apart; a URL counts once in a total, is marked so, and what is beyond is held."""
    budgets = made({"*": {"budget": 2, "pages": 7}}, policy="none")
    partition = Partition.open(directory, 1, LIMITS, budgets=budgets, pld_of=pld_of, pld_key=pld_key)
    world = PartitionWorld()
    world.offer(make_url(i, f"h{i % 3}.a.example") for i in range(60))
    world.step(partition, room=6)
    assert partition.state.turns.state.turn == 0
    assert Counter(url.host for url in world.admitted) == {f"h{i}.a.example": 2 for i in range(3)}
    for _ in range(20):
        world.step(partition, room=10)
        partition._check()
    assert Counter(url.host for url in world.admitted) == {f"h{i}.a.example": 7 for i in range(3)}
    assert all(url.flags & COUNTED for url in world.admitted)
    assert is_withheld(partition)
    partition.sources.set_budgets(made({"*": {"budget": 2, "pages": 9}}, policy="none"))
    for _ in range(20):
        world.step(partition, room=10)
    assert Counter(url.host for url in world.admitted) == {f"h{i}.a.example": 9 for i in range(3)}


def total_of(partition: Partition, account: int) -> tuple[int, int]:
    pages, sizes = partition.state.tables["totals"].values(np.array([account], dtype=np.uint64))[1][0].item()
    return pages, sizes


def test_bytes_that_nodes_tell_are_added_up(directory: Path) -> None:
    """Over the entries of a step and over steps, each account by itself."""
    partition = Partition.open(directory, 1, LIMITS)
    told = [(A, 1_000), (B, 1), (A, 5_000), (A, 0xFFFF << 11)]
    entries = [InboxEntry(f"{at + 1}-0", outcomes=pack_fetched(*one)) for at, one in enumerate(told)]
    for step in entries[:3], entries[3:]:
        partition.step(step, 0, {})
    assert total_of(partition, A) == (0, (1 + 5 << 10) + (0xFFFF << 11))
    assert total_of(partition, B) == (0, 1 << 10)


def test_of_imported_totals_the_larger_numbers_count(directory: Path) -> None:
    partition = Partition.open(directory, 1, LIMITS)
    for number, row in enumerate([(10, 2_000), (4, 9_000)], 1):
        rows = pack_rows("totals", np.array([3], dtype=np.uint64).tobytes(), np.array([row], dtype=TOTAL).tobytes())
        partition.step([InboxEntry(f"{number}-0", rows=rows)], 0, {})
    assert total_of(partition, 3) == (10, 9_000)
