"""Traps in a partition: which PLDs are caught, what becomes of their budgets, and that no URL is lost for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.config import read_config
from bigcrawl.features.revisits.fold import Revisits
from bigcrawl.features.traps.fold import Traps
from bigcrawl.features.traps.shape import CALENDAR, SESSION
from bigcrawl.features.traps.verdicts import (
    WINDOW,
    TrapRules,
    TrapVerdict,
    pack_same_content,
    pack_wildcard,
    trap_verdict_text,
)
from bigcrawl.scheduler.budgets.allowances import EffectiveBudgets, divide_budgets, lower_allowances
from bigcrawl.scheduler.budgets.in_degrees import EMPTY_COUNTS
from bigcrawl.scheduler.budgets.other_policies import FixedBudgets
from bigcrawl.scheduler.partition.directory import verify_newest
from bigcrawl.scheduler.partition.fold.budgeting import BudgetedQueues
from bigcrawl.scheduler.partition.fold.pld_records import BudgetSource
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits, Step
from bigcrawl.scheduler.partition.reader import read_partition
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.queued_url import RANGES_SHIFT, TRAITS_SHIFT, QueuedUrl, TimedUrl, encode_timed
from bigcrawl.scheduler.rules.budget_rules import RuleBook, parse_rules
from tests.support.keys import pld_key
from tests.support.worlds.partition_world import PartitionWorld, SetBudgets, make_runs_early, make_url, pld_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

RULES = TrapRules(share=0.5, divisor=5)
LIMITS = PartitionLimits(
    host_hot_max=10_000, host_hot_low=10_000, features=(Traps(RULES), Revisits.of_config(read_config({})))
)
BUDGET = 20
HOSTS = ("hand.example", "www.trap.example", "trap.example")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state" / "p0007"


def opened(directory: Path, epoch: int = 1, limits: PartitionLimits = LIMITS) -> Partition:
    return Partition.open(directory, epoch, limits, budgets=SetBudgets(BUDGET), pld_of=pld_of, pld_key=pld_key)


def marked(numbers: Iterable[int], host: str, marks: int = CALENDAR) -> list[QueuedUrl]:
    return [make_url(number, host)._replace(flags=marks << TRAITS_SHIFT) for number in numbers]


def plain(numbers: Iterable[int], host: str) -> list[QueuedUrl]:
    return [make_url(number, host) for number in numbers]


def fold(world: PartitionWorld, partition: Partition, urls: list[QueuedUrl], room: int = 0) -> Step:
    world.offer(urls)
    step = partition.step(world.unread(partition), room, world.hot)
    world.admit(step.batch)
    return step


def divisor(partition: Partition, pld: str) -> int:
    found = partition.budget_divisors(np.array([pld_key(pld)], dtype=np.uint64))
    return 1 if found is None else int(found[0])


def test_pld_is_caught_by_a_full_window(directory: Path) -> None:
    """Not before, however its URLs look; then the operator is told, with the numbers, once."""
    world, partition = PartitionWorld(), opened(directory)
    assert fold(world, partition, marked(range(WINDOW - 1), "www.trap.example")).messages == ()
    assert divisor(partition, "trap.example") == 1
    [change] = fold(world, partition, marked([WINDOW], "b.trap.example", CALENDAR | SESSION)).messages
    assert change == (
        "trap.example is taken for a trap and its budget divided by 5: 256 of its last 256 new URLs look like a trap's "
        "(session 1, calendar 256)"
    )
    assert divisor(partition, "trap.example") == 5
    assert fold(world, partition, marked(range(1000, 1000 + WINDOW), "www.trap.example")).messages == ()
    partition._check()


def test_pages_that_are_visited_again_are_no_new_urls(directory: Path) -> None:
    """A few odd pages do not make a site a trap by being visited again and again."""
    partition, visited = opened(directory), marked(range(WINDOW // 4), "www.trap.example")
    world = PartitionWorld()
    fold(world, partition, [*visited, *plain(range(1000, 1000 + WINDOW // 2), "www.trap.example")])
    for number in range(1, 4):
        again = encode_timed([TimedUrl(number * 100, number, url) for url in visited])
        partition.step([InboxEntry(f"{number}800000000000-0", timed=again)], 0, {}, now_s=number * 100 - 50)
        assert len(partition.state.turns.timed) == len(visited)
        assert partition.step([], 0, {}, now_s=number * 100 + 10).messages == ()
        assert len(partition.state.turns.timed) == 0
    assert divisor(partition, "trap.example") == 1
    partition._check()


def test_its_budget_is_lowered_and_nobody_elses(directory: Path) -> None:
    """In each turn so many fewer; all of its URLs come all the same, in their order."""
    world, partition = PartitionWorld(), opened(directory)
    fold(world, partition, marked(range(WINDOW), "www.trap.example"))
    world.drain(partition, LIMITS.host_hot_max)
    world.offer([*plain(range(2000, 2100), "www.trap.example"), *plain(range(3000, 3500), "fair.example")])
    world.step(partition, room=0)
    now, waiting = partition.state.turns.state, partition.state.turns.by_turn
    assert waiting[now.turn + 1] == now.quantum * (BUDGET // RULES.divisor + BUDGET)
    world.drain(partition, LIMITS.host_hot_max)


def test_ordinary_urls_set_a_pld_free(directory: Path) -> None:
    """A window of others, and its budget is whole again; the operator is told that too."""
    world, partition = PartitionWorld(), opened(directory)
    fold(world, partition, marked(range(WINDOW), "trap.example"))
    [change] = fold(world, partition, plain(range(1000, 1000 + WINDOW), "trap.example")).messages
    assert change.startswith("trap.example is taken for a trap no longer")
    assert divisor(partition, "trap.example") == 1


def test_a_small_share_is_no_trap(directory: Path) -> None:
    """An archive has its calendar pages too. The share is of what is new: known URLs do not count again."""
    world, partition = PartitionWorld(), opened(directory)
    calendar = marked(range(100), "archive.example")
    for _ in range(5):
        fold(world, partition, calendar)
    assert fold(world, partition, plain(range(1000, 1000 + WINDOW), "archive.example")).messages == ()
    assert divisor(partition, "archive.example") == 1


def test_pld_that_never_looked_like_a_trap_has_no_record(directory: Path) -> None:
    """So most cost nothing on disk, and nothing is looked up until one does."""
    world, partition = PartitionWorld(), opened(directory)
    fold(world, partition, plain(range(1000), "fair.example"))
    assert not len(partition.state.tables["traps"])
    fold(world, partition, [*marked([2000], "odd.example"), *plain(range(3000, 3100), "fair.example")])
    assert len(partition.state.tables["traps"]) == 1


def test_other_marks_are_none_of_a_shape(directory: Path) -> None:
    """A URL that was set aside for its address carries the mark of the blacklist's ranges."""
    world, partition = PartitionWorld(), opened(directory)
    set_aside = [url._replace(flags=1 << RANGES_SHIFT) for url in plain(range(WINDOW), "fair.example")]
    assert fold(world, partition, set_aside).messages == ()
    assert not len(partition.state.tables["traps"])


@pytest.mark.parametrize("limits", [PartitionLimits(10_000, 10_000)])
def test_traps_can_be_off(directory: Path, limits: PartitionLimits) -> None:
    """Then marks mean nothing, and what was caught before is free."""
    world, partition = PartitionWorld(), opened(directory)
    fold(world, partition, marked(range(WINDOW), "trap.example"))
    partition.committed.make_durable()
    again = opened(directory, 2, limits)
    world.bring_up(again)
    assert divisor(again, "trap.example") == 1
    assert fold(world, again, marked(range(1000, 1000 + WINDOW), "trap.example")).messages == ()


def test_a_trap_stays_known_over_owners(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is in the manifest like the others, half a window too; whoever does not own it can read it."""
    make_runs_early(monkeypatch, 1)
    world, partition = PartitionWorld(), opened(directory)
    fold(world, partition, marked(range(WINDOW), "trap.example"))
    fold(world, partition, marked(range(5000, 5000 + WINDOW // 2), "half.example"))
    partition.committed.make_durable()
    again = opened(directory, 2)
    world.bring_up(again)
    assert (divisor(again, "trap.example"), divisor(again, "half.example")) == (5, 1)
    fold(world, again, marked(range(6000, 6000 + WINDOW // 2), "half.example"))
    assert divisor(again, "half.example") == 5
    found = read_partition(directory, 1, pld_key("trap.example"))
    assert found is not None
    trap = found.said["traps"]
    assert (trap.is_caught, trap.kinds) == (True, {"calendar": WINDOW})
    assert not verify_newest(directory)


def test_budget_set_by_hand_is_not_lowered(directory: Path) -> None:
    """The operator knows the site; a rule for a host counts apart, and is not lowered either."""
    rules = parse_rules({"hand.example": {"budget": BUDGET}, "www.trap.example": {"budget": 7}})
    budget = read_config({"BIGCRAWL_BUDGET": BUDGET, "BIGCRAWL_BUDGET_POLICY": "fixed"}).budget
    budgets = EffectiveBudgets(
        FixedBudgets(budget, EMPTY_COUNTS), RuleBook(rules, pld_of, pld_key), lambda body: (body.decode(), 0)
    )
    partition = Partition.open(directory, 1, LIMITS, budgets=budgets, pld_of=pld_of, pld_key=pld_key)
    world = PartitionWorld()
    for at, host in enumerate(HOSTS):
        fold(world, partition, marked(range(at * 1000, at * 1000 + WINDOW), host))
    assert divisor(partition, "hand.example") == 5, "caught all the same, and told"
    later = [url for at, host in enumerate(HOSTS) for url in plain(range(9000 + at, 9000 + at + 1), host)]
    work = BudgetedQueues(
        partition.state.tables, partition.state.turns, BudgetSource(budgets, pld_of, pld_key), LIMITS.features
    )
    plds = work._plds.keys(later)
    allowed = lower_allowances(
        work._allowances_of(later, plds, np.zeros(len(later), dtype=np.uint32)), plds, work._budget_divisors(plds)
    )
    assert allowed.budgets.tolist() == [BUDGET, 7, BUDGET // 5]


def test_same_content_lowers_a_budget_too(directory: Path) -> None:
    """By the word of the node that fetches, whatever the URLs look like; kept over owners; taken back by its word."""
    world, partition = PartitionWorld(), opened(directory)
    key = pld_key("copies.example")

    def say(partition: Partition, same: int) -> None:
        world.offer([])
        entry = world.inbox[-1]._replace(outcomes=pack_same_content(key, same))
        partition.step([entry], 0, {})

    say(partition, 0)
    assert not len(partition.state.tables["traps"]), "a PLD that is none has no record"
    say(partition, 60)
    partition.committed.make_durable()
    again = opened(directory, 2)
    assert divisor(again, "copies.example") == 5
    found = read_partition(directory, 1, key)
    assert found is not None
    assert found.end is None, "it is not a URL's end"
    assert trap_verdict_text(found.said["traps"]) == "about 60 of its last 64 pages had the content of others"
    fold(world, again, plain(range(WINDOW), "copies.example"))
    assert divisor(again, "copies.example") == 5, "ordinary URLs do not take it back"
    say(again, 0)
    assert divisor(again, "copies.example") == 1
    again._check()


def test_wildcard_in_dns_and_shapes_catch_apart(directory: Path) -> None:
    """Each sign is taken back by its own kind alone; both together divide once."""
    world, partition = PartitionWorld(), opened(directory)
    key = pld_key("farm.example")

    def say(found: bool) -> None:
        world.offer([])
        partition.step([world.inbox[-1]._replace(outcomes=pack_wildcard(key, found=found))], 0, {})

    def verdict() -> TrapVerdict:
        found = read_partition(directory, 1, key)
        assert found is not None
        trap = found.said["traps"]
        assert isinstance(trap, TrapVerdict)
        return trap

    say(found=False)
    assert not len(partition.state.tables["traps"]), "a PLD that is none has no record"
    say(found=True)
    assert divisor(partition, "farm.example") == 5
    assert trap_verdict_text(verdict()) == "DNS has an address for any name of it"
    fold(world, partition, marked(range(WINDOW), "farm.example"))
    assert divisor(partition, "farm.example") == 5
    say(found=False)
    assert divisor(partition, "farm.example") == 5, "its URLs look like a trap's still"
    assert not verdict().is_wildcard
    say(found=True)
    fold(world, partition, plain(range(WINDOW, 2 * WINDOW), "farm.example"))
    assert divisor(partition, "farm.example") == 5, "and the wildcard is still there"
    say(found=False)
    assert divisor(partition, "farm.example") == 1
    partition._check()


@given(st.lists(st.tuples(st.integers(0, 1_000_000), st.integers(1, 1_000_000)), min_size=1))
def test_divided_budget_is_never_none(pairs: list[tuple[int, int]]) -> None:
    """What had a budget keeps one, and nobody gets more."""
    budgets, divisors = (np.array(column, dtype=np.uint32) for column in zip(*pairs, strict=True))
    found = divide_budgets(budgets, divisors)
    assert ((found == 0) == (budgets == 0)).all()
    assert (found <= budgets).all()
    assert (found <= np.maximum(budgets / divisors, 1)).all()
