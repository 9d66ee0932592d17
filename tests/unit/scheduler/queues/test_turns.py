from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.drum.files import DiskFiles
from bigcrawl.scheduler.budgets.placement import OVER_BUDGET
from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
from bigcrawl.scheduler.queues.front_queues import Selector
from bigcrawl.scheduler.queues.turn_state import FIRST_TURN, QUANTUM_MAX, WINDOW_GROWN, WINDOW_MAX, TurnState
from bigcrawl.scheduler.queues.turns import TurnQueues
from tests.support.worlds.partition_world import make_url

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bigcrawl.scheduler.queues.fifo import FifoState


@pytest.fixture
def epoch(tmp_path: Path) -> EpochDirectory:
    return EpochDirectory(tmp_path, 1, DiskFiles())


def turns_at(epoch: EpochDirectory, state: TurnState = FIRST_TURN) -> TurnQueues:
    return TurnQueues.restore(epoch, {}, state, Selector())


def put(turns: TurnQueues, where: Sequence[int], start: int = 0, *, reread: bool = False) -> None:
    urls = [make_url(start + number) for number in range(len(where))]
    turns.put(urls, where, [0] * len(where), reread=reread)


def taken(turns: TurnQueues) -> list[int]:
    """Numbers of the URLs that the front queues have, all taken."""
    found = []
    while (level := turns.front.choose_level()) is not None:
        found.append(int(turns.front.queues[level].pop().body.rpartition(b"/")[2]))
    return found


def test_turns_come_one_after_the_other_and_empty_ones_are_passed_over(epoch: EpochDirectory) -> None:
    """When the front queues are empty, the next turn that has URLs becomes the current one."""
    turns = turns_at(epoch)
    put(turns, [0, 3, 0, 1, 3])
    assert turns.by_turn == {0: 2, 1: 1, 3: 2}
    turns.flush()
    assert taken(turns) == [0, 2]
    assert turns.advance()
    assert (turns.state.turn, taken(turns)) == (1, [3])
    assert turns.advance()
    turns.flush()
    turns._check()
    again = TurnQueues.restore(epoch, turns.queue_states(), turns.state, turns.front.selector)
    again._check()
    assert (again.state.turn, taken(again)) == (3, [1, 4])
    assert not again.advance()
    assert again.is_plain
    assert again.state.turn == 3


def test_a_fork_changes_nothing_in_its_origin(epoch: EpochDirectory) -> None:
    """A step that is given up leaves turns and counts as they were."""
    turns = turns_at(epoch)
    put(turns, [0, 1, OVER_BUDGET])
    turns.flush()
    before = (turns.state, dict(turns.queue_states()), turns.by_turn, len(turns))
    fork = turns.fork()
    taken(fork)
    fork.advance()
    put(fork, [2, OVER_BUDGET], 10)
    fork.begin_reread()
    assert len(fork.over.next_urls(10)) == 2
    fork.end_reread()
    fork.flush()
    fork._check()
    assert (turns.state, dict(turns.queue_states()), turns.by_turn, len(turns)) == before
    turns._check()


def test_a_turn_that_enough_have_joined_takes_no_more(epoch: EpochDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """It closes when so many ordinary URLs came while it was the current one, or as many as it has extra ones."""
    monkeypatch.setattr("bigcrawl.scheduler.queues.turns.TURN_CLOSES_AT", 5)
    turns = turns_at(epoch)
    put(turns, [0, 0, 0])
    taken(turns)
    assert (turns.window.first, turns.window.last) == (0, 4)
    put(turns, [0, 0, 1], 10)
    assert turns.window.first == 1
    taken(turns)
    turns.advance()
    assert turns.window.first == 1
    turns.put([make_url(n) for n in range(20, 28)], [1] * 8, [1] * 8, reread=False)
    put(turns, [1] * 7, 30)
    assert turns.window.first == 1
    put(turns, [1], 40)
    assert turns.window.first == 2
    again = TurnQueues.restore(epoch, {}, turns.state, Selector())
    assert again.window.first == 2


def test_a_turn_is_open_when_it_begins(epoch: EpochDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many URLs were placed in it before, others may join it."""
    monkeypatch.setattr("bigcrawl.scheduler.queues.turns.TURN_CLOSES_AT", 5)
    turns = turns_at(epoch)
    put(turns, [1] * 50)
    turns.advance()
    assert (turns.state.ordinary, turns.state.joined, turns.window.first) == (50, 0, 1)


def test_the_over_budget_queue_is_read_at_doubling_intervals(epoch: EpochDirectory) -> None:
    """Each re-read doubles the window up to its bound, and is due that many turns later, or sooner for want of URLs."""
    turns = turns_at(epoch)
    due = []
    for turn in range(1, 800):
        put(turns, [turn, OVER_BUDGET], 2 * turn)
        taken(turns)
        turns.advance()
        if turns.wants_reread(starved=False):
            due.append(turn)
            turns.begin_reread()
            while urls := turns.over.next_urls(1000):
                put(turns, [turn] * len(urls), reread=True)
            turns.end_reread()
            assert turns.state.window == min(4 * 2 ** len(due), WINDOW_MAX)
    assert due == [4, 12, 28, 60, 124, 252, 380, 508, 636, 764]
    put(turns, [OVER_BUDGET], 5000)
    assert turns.wants_reread(starved=True)


def reread(turns: TurnQueues, places: Sequence[int], waiting: int = 0) -> None:
    """One re-read of as many URLs, so many of which wait already."""
    put(turns, [OVER_BUDGET] * (len(places) - waiting))
    turns.begin_reread()
    assert len(turns.over.next_urls(10_000)) == len(places)
    assert not turns.over.next_urls(1)
    put(turns, places, reread=True)
    turns.end_reread()


def flushed(turns: TurnQueues) -> dict[str, FifoState]:
    """Its queues, written."""
    turns.flush()
    return dict(turns.queue_states())


def test_a_reread_that_nothing_passed_is_not_repeated_for_nothing(epoch: EpochDirectory) -> None:
    """What waits rests until there are other budgets, or the turns have moved on; not while these are full."""
    turns = turns_at(epoch)
    put(turns, [3])
    reread(turns, [OVER_BUDGET] * 3)
    assert not turns.state.is_resting, "they may pass when there is room in turns again"
    turns = turns_at(epoch)
    reread(turns, [OVER_BUDGET] * 3)
    assert turns.state.is_resting
    assert not turns.wants_reread(starved=True)
    turns.allow_reread()
    assert turns.wants_reread(starved=True)
    turns.begin_reread()
    turns.allow_reread()
    turns.over.next_urls(10)
    turns.over.next_urls(10)
    put(turns, [OVER_BUDGET] * 3, reread=True)
    turns.end_reread()
    assert not turns.state.is_resting, "part of it was decided by the budgets before"


def test_a_queue_that_has_trebled_is_read_when_the_turn_has_moved(
    epoch: EpochDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that failed and twice as many that came since, and some more; few are left until their turn."""
    monkeypatch.setattr("bigcrawl.scheduler.queues.turn_state._REREAD_LEAST", 10)
    turns = turns_at(epoch)
    put(turns, [0, 1, 2, 3, *[OVER_BUDGET] * 10])
    assert not turns.wants_reread(starved=False), "all are where they were when they came"
    taken(turns)
    turns.advance()
    assert turns.wants_reread(starved=False)
    reread(turns, [2] * 5 + [OVER_BUDGET] * 25, waiting=10)
    assert (turns.state.window, turns.state.next_reread) == (8, 9)
    taken(turns)
    turns.advance()
    put(turns, [OVER_BUDGET] * 59, 100)
    assert not turns.wants_reread(starved=False), "25 have failed"
    put(turns, [OVER_BUDGET], 200)
    assert turns.wants_reread(starved=False)
    again = TurnQueues.restore(epoch, flushed(turns), turns.state, Selector())
    assert again.wants_reread(starved=False)
    reread(again, [3] + [OVER_BUDGET] * 84, waiting=85)
    again = turns_at(epoch, FIRST_TURN._replace(window=WINDOW_GROWN, next_reread=40))
    put(again, [9])
    again.begin_reread()
    assert again.state.window == WINDOW_GROWN, "more turns only for the sake of turns"


def test_small_turns_raise_the_quantum(epoch: EpochDirectory) -> None:
    """Three URLs for eight turns, of one whose share ends beyond them; not above the bound, nor when nothing passes."""
    turns = turns_at(epoch)
    reread(turns, [1, 2, 8, *[OVER_BUDGET] * 3])
    assert turns.state.quantum == 2
    reread(turns, [OVER_BUDGET] * 5, waiting=3)
    assert turns.state.quantum == 1, "and lowers it, when nobody is at the end of the window"
    turns = turns_at(epoch, FIRST_TURN._replace(quantum=QUANTUM_MAX))
    reread(turns, [8, *[OVER_BUDGET] * 99])
    assert turns.state.quantum == QUANTUM_MAX


def test_a_quantum_that_nobody_needs_falls(epoch: EpochDirectory) -> None:
    """All had room for what they had, or what failed is withheld."""
    turns = turns_at(epoch, FIRST_TURN._replace(quantum=8))
    reread(turns, [1, 2, *[OVER_BUDGET] * 3])
    assert turns.state.quantum == 4


def test_a_backlog_that_nobody_pays_for_raises_the_quantum_before_it_is_read(epoch: EpochDirectory) -> None:
    """An eighth of it is to fit into the window, by what turns were like so far."""
    over = [OVER_BUDGET]
    turns = turns_at(epoch)
    put(turns, over * 8000)
    turns.begin_reread()
    assert (turns.state.window, turns.state.quantum) == (8, 128), "nothing else waits: all of it is to be paid for"
    turns = turns_at(epoch)
    put(turns, [0] * 5 + over * 8000)
    turns.begin_reread()
    assert turns.state.quantum == 1, "all of it has come since the last time"
    turns = turns_at(epoch)
    put(turns, [0])
    reread(turns, [8] * 5 + over * 990)
    before = turns.state.quantum
    put(turns, over * 350, 2000)
    turns.begin_reread()
    assert (turns.state.window, turns.state.quantum) == (16, before << 3), "815 are to be paid for, eight by each turn"


def test_large_turns_lower_the_quantum(epoch: EpochDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns above the bound that cost little to fill are made smaller, down to one budget."""
    monkeypatch.setattr("bigcrawl.scheduler.queues.turn_state._TURN_LARGE", 10)
    monkeypatch.setattr("bigcrawl.scheduler.queues.turn_state._TURN_SMALL", 2)
    turns = turns_at(epoch, FIRST_TURN._replace(quantum=2))
    put(turns, [0, 0])
    reread(turns, [8] * 90)
    assert turns.state.quantum == 1
    reread(turns, [16] * 190)
    assert turns.state.quantum == 1


def test_each_url_of_a_turn_is_scored_again_once(epoch: EpochDirectory) -> None:
    """In portions, the highest level first; what is put back, or joins meanwhile, is not taken again."""
    turns = turns_at(epoch)
    turns.append([make_url(number, priority=number % 3) for number in range(9)])
    turns.begin_rescore()
    numbers = []
    while found := turns.rescoring.next_urls(turns.front, 2):
        tiers, urls = zip(*found, strict=True)
        numbers += [url.priority for url in urls]
        turns.front.put_back(tiers, [url._replace(priority=-1) for url in urls])
        turns.append([make_url(100 + len(numbers))])
        turns.flush()
        turns = turns.fork()
    assert sorted(numbers) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert set(numbers[:6]) == {1, 2}
    assert turns.front.counts()[:3] == (9, 5, 0)
    assert turns.rescoring.rescored_ever == 9


def test_large_requests_are_scored_again_a_few_at_a_time(epoch: EpochDirectory) -> None:
    """A portion is bounded in memory, not only in number."""
    turns = turns_at(epoch)
    turns.append([make_url(number)._replace(body=b"x" * (6 << 20)) for number in range(4)])
    turns.begin_rescore()
    assert [len(turns.rescoring.next_urls(turns.front, 4_096)) for _ in range(3)] == [3, 1, 0]
