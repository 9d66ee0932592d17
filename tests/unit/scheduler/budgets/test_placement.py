from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.scheduler.budgets.placement import (
    OVER_BUDGET,
    RECORD,
    TIER_SHIFT,
    TurnWindow,
    ordinals_within_plds,
    place_urls,
)

EXTRA = 1 << TIER_SHIFT
OPEN = TurnWindow(first=5, last=9, generation=3, is_rereading=False, quantum=1)


def records_of(*rows: tuple[int, int, int]) -> np.ndarray:
    return np.array([(7, *row, 0) for row in rows], dtype=RECORD)


def place_one(
    count: int, record: tuple[int, int, int], budget: int, window: TurnWindow = OPEN, *, reread: bool = False
):
    """Where `count` URLs of one PLD go: turns, tiers, its record."""
    whose = np.zeros(count, dtype=np.intp)
    turns, tiers, after = place_urls(
        whose, records_of(record), np.array([budget], dtype=np.uint32), window, reread=reread
    )
    assert after["in_degree"].tolist() == [7]
    return turns.tolist(), tiers.tolist(), after[0].tolist()[1:4]


def test_each_turn_takes_a_budget_and_the_window_ends_it() -> None:
    """Of a PLD that is new, each turn takes its budget, from the first on; the rest is over budget and marked."""
    turns, tiers, after = place_one(13, (0, 0, 0), 2)
    assert turns == [5, 5, 6, 6, 7, 7, 8, 8, 9, 9, OVER_BUDGET, OVER_BUDGET, OVER_BUDGET]
    assert not any(tiers)
    assert after == (9, 2, 6)


def test_it_goes_on_where_the_last_one_went() -> None:
    """What a turn has had counts, and a turn that is past does not."""
    assert place_one(3, (6, 3, 0), 4)[0] == [6, 7, 7]
    assert place_one(3, (4, 3, 0), 4)[0] == [5, 5, 5]
    assert place_one(3, (4, 3, 0), 4)[2] == (5, 3, 0)
    assert place_one(1, (6, 4, 0), 4)[2] == (7, 1, 0)


def test_a_lower_budget_than_before_takes_nothing_back() -> None:
    """A turn that had more than the budget of today is full."""
    assert place_one(3, (6, 30, 0), 2)[0] == [7, 7, 8]


def test_the_quantum_multiplies_the_share_and_what_is_beyond_the_budget_is_extra() -> None:
    """With a quantum of 3, a budget of 2 is six a turn, of which four are extra."""
    turns, tiers, after = place_one(8, (0, 0, 0), 2, OPEN._replace(quantum=3))
    assert turns == [5] * 6 + [6] * 2
    assert tiers == [0, 0, 1, 1, 1, 1, 0, 0]
    assert after == (6, 2, 0)


def test_the_more_a_pld_has_in_a_turn_the_later_it_comes() -> None:
    """The second to eighth budget, and all others; counted on from one batch to the next."""
    window = OPEN._replace(quantum=100)
    _, tiers, after = place_one(40, (0, 0, 0), 2, window)
    assert tiers == [0] * 2 + [1] * 14 + [2] * 24
    assert after == (5, 40 + 2 * EXTRA, 0)
    assert place_one(6, (5, 12 + EXTRA, 0), 2, window)[1] == [1] * 4 + [2] * 2


def test_an_ordinary_url_passes_no_extra_one_of_its_pld() -> None:
    """When the budget has risen, what follows extra URLs in their turn is extra as well, and of no lower tier."""
    turns, tiers, after = place_one(3, (6, 4 + EXTRA, 0), 6)
    assert (turns, tiers, after) == ([6, 6, 7], [1, 1, 0], (7, 1, 0))
    assert place_one(2, (6, 20 + 2 * EXTRA, 0), 6, OPEN._replace(quantum=9))[1:] == ([2, 2], (6, 22 + 2 * EXTRA, 0))
    assert place_one(1, (6, 4 + EXTRA, 0), 6)[2] == (6, 5 + EXTRA, 0)
    assert place_one(3, (0, 0, 0), 2, OPEN._replace(quantum=3))[2] == (5, 3 + EXTRA, 0)
    assert place_one(1, (4, 4 + EXTRA, 0), 6) == ([5], [0], (5, 1, 0))


def test_no_budget_is_over_budget() -> None:
    """A budget of 0 holds everything, and changes nothing else in the record."""
    assert place_one(2, (6, 1, 0), 0) == ([OVER_BUDGET] * 2, [2, 2], (6, 1, 6))


@pytest.mark.parametrize(
    ("mark", "is_rereading", "reread", "passes", "marked"),
    [
        (0, False, False, True, 0),
        (5, False, False, True, 5),  # its generation has been read
        (6, False, False, False, 6),
        (7, False, False, False, 7),
        (4, True, False, False, 6),  # its generation is being read: it waits behind those that are left
        (5, True, False, False, 6),
        (3, True, False, True, 3),
        (4, True, True, True, 4),
        (6, True, True, True, 6),  # newer ones of its PLD arrived since, and wait behind it
        (7, True, True, False, 7),  # an older one of its PLD has failed
    ],
)
def test_marks_keep_the_order(mark: int, is_rereading: bool, reread: bool, passes: bool, marked: int) -> None:
    """A URL passes only if no older one of its PLD waits over budget."""
    window = OPEN._replace(is_rereading=is_rereading)
    turns, _, after = place_one(1, (2, 1, mark), 4, window, reread=reread)
    assert (turns[0] != OVER_BUDGET) == passes
    assert after[2] == marked


def test_what_fails_again_bars_what_is_behind_it() -> None:
    """A re-read URL that fails marks its PLD as failed, so that none behind it passes."""
    turns, _, after = place_one(3, (9, 1, 4), 2, OPEN._replace(is_rereading=True), reread=True)
    assert turns == [9, OVER_BUDGET, OVER_BUDGET]
    assert after == (9, 2, 7)


def test_ordinals_count_each_pld_apart() -> None:
    """Each URL's number among those of its PLD."""
    assert ordinals_within_plds(np.array([2, 0, 2, 2, 0, 1]), 4).tolist() == [0, 0, 1, 2, 1, 0]
    assert ordinals_within_plds(np.array([], dtype=np.intp), 3).tolist() == []


class Row(NamedTuple):
    pld: int
    reread: bool


@dataclass
class Model:
    """One URL at a time, in plain numbers."""

    window: TurnWindow
    budgets: list[int]
    records: dict[int, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))

    def place(self, pld: int, *, reread: bool) -> tuple[int, int]:
        first, last, n, is_rereading, quantum = self.window
        record, budget = self.records[pld], self.budgets[pld]
        oldest_bar = 2 * n + 1 if reread else 2 * (n - is_rereading)
        turn, used = record[:2] if record[0] >= first else (first, 0)
        tier, used = divmod(used, EXTRA)
        if used >= budget * quantum:
            turn, used, tier = turn + 1, 0, 0
        if record[2] >= oldest_bar or not budget or turn > last:
            record[2] = max(record[2], 2 * n + reread)
            return OVER_BUDGET, 0
        tier = max(tier, sum(used >= many * budget for many in (1, 8)))
        record[:2] = turn, used + 1 + EXTRA * tier
        return turn, tier


budgets_ = st.lists(st.integers(0, 4), min_size=4, max_size=4)
quanta = st.sampled_from((1, 2, 3, 6, 40))
rows = st.lists(st.builds(Row, st.integers(0, 3), st.booleans()), max_size=60)


@given(
    st.lists(st.tuples(rows, st.integers(0, 3), st.booleans(), quanta, budgets_), max_size=6),
)
def test_many_at_once_are_as_one_at_a_time(batches: list[tuple[list[Row], int, bool, int, list[int]]]) -> None:
    """Placing a batch is placing its URLs one after the other, as turns and generations go on."""
    model = Model(TurnWindow(0, 3, 1, False, 1), [])
    records = np.zeros(4, dtype=RECORD)
    turn = 0
    for batch, moved, begins, quantum, budgets in batches:
        turn += moved
        model.budgets = budgets
        generation = model.window.generation + begins
        model.window = window = TurnWindow(turn, turn + 3, generation, begins, quantum)
        for reread in (False, True) if begins else (False,):
            whose = np.array([row.pld for row in batch if row.reread == reread], dtype=np.intp)
            expected = [model.place(pld, reread=reread) for pld in whose.tolist()]
            placed = place_urls(whose, records, np.array(budgets, dtype=np.uint32), window, reread=reread)
            assert placed.turns.tolist() == [turn for turn, _ in expected]
            passed = placed.turns != OVER_BUDGET
            assert placed.tiers[passed].tolist() == [tier for turn, tier in expected if turn != OVER_BUDGET]
            records = placed.records
    for pld, record in model.records.items():
        assert records[pld].tolist() == (0, *record, 0)
