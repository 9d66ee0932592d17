"""Suspects are tried few at a time, then alone; others wait for them, for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.scheduler.handout.suspects import FEW
from bigcrawl.scheduler.records.at_gates import Suspicion
from bigcrawl.scheduler.records.held import HeldUrl, Stage
from tests.unit.scheduler.handout.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path


ONCE, TWICE = Suspicion(1, 1, False), Suspicion(2, 2, False)
MANY = 3 * FEW


class CarefulDesk(Desk):
    """A desk at which suspects come by."""

    @property
    def waiting(self) -> int:
        return self.handout.suspects.waiting

    def admitted(self, seq: int, suspicion: Suspicion | None = None) -> HeldUrl:
        held = self.taken(seq)
        if suspicion is not None:
            held.suspicion = suspicion
            assert not self.handout.suspects.record_taken(held)
        self.handout.admit(held)
        return held

    def pop_all(self) -> list[HeldUrl]:
        """All that may be started now, and is."""
        popped = []
        while (held := self.handout.buffer.pop()) is not None:
            self.handout.fetches.record_started(held)
            popped.append(held)
        return popped


@pytest.fixture
def desk(tmp_path: Path) -> CarefulDesk:
    return CarefulDesk(tmp_path, fetches_min=0)


def test_suspects_go_first_and_with_few_others(desk: CarefulDesk) -> None:
    """As each ends another begins; when all are through there is no bound any more."""
    others = [desk.admitted(seq) for seq in range(1, MANY + 1)]
    suspects = [desk.admitted(100 + seq, ONCE) for seq in range(FEW + 2)]
    assert desk.pop_all() == suspects[:FEW]
    for held in suspects[:2]:
        desk.handout.fetches.end(held)
    assert desk.pop_all() == suspects[FEW:]
    desk.handout.fetches.end(suspects[2])
    assert desk.pop_all() == others[:1]
    for held in suspects[3:]:
        desk.handout.fetches.end(held)
    assert len(desk.pop_all()) > FEW


def test_last_try_is_alone(desk: CarefulDesk) -> None:
    """Nothing is started until all have ended, and nothing beside it; Redis knows before it begins."""
    others = [desk.admitted(seq) for seq in range(1, 4)]
    assert desk.pop_all() == others
    lone, few, other = desk.admitted(7, TWICE), desk.admitted(8, ONCE), desk.admitted(9)
    assert desk.pop_all() == []
    assert desk.handout.suspects.next_alone() is None, "others are in process"
    for held in others:
        desk.handout.fetches.end(held)
    assert desk.pop_all() == [], "Redis does not know of it yet"
    assert desk.handout.suspects.next_alone() is lone
    desk.handout.suspects.record_announced(lone)
    assert desk.pop_all() == [lone]
    desk.handout.fetches.end(lone)
    assert desk.pop_all() == [few, other]


def test_engine_is_woken_when_there_is_room_again(desk: CarefulDesk) -> None:
    """It has asked, heard that there is nothing, and would ask again in seconds."""
    woken: list[int] = []
    desk.handout.wake_engine = lambda: woken.append(1)
    desk.admitted(1, ONCE)
    [held] = desk.pop_all()
    woken.clear()
    desk.handout.fetches.end(held)
    assert woken == [1]


def test_suspects_that_left_do_not_hold_up_others(desk: CarefulDesk) -> None:
    """Given back, or lost with their partition."""
    desk.admitted(1, TWICE)
    desk.admitted(2, ONCE)
    desk.handout.return_unstarted()
    assert desk.handout.suspects.next_alone() is None
    assert desk.waiting == 0
    other = desk.admitted(3)
    assert desk.pop_all() == [other]


def test_suspects_are_overdue_together(desk: CarefulDesk) -> None:
    """When they have made others wait for too long: not before."""
    assert desk.handout.suspects.overdue(0) == []
    first, second = desk.admitted(1, TWICE), desk.admitted(2, ONCE)
    desk.clock.advance(29)
    assert desk.handout.suspects.overdue(30) == []
    desk.clock.advance(1)
    assert set(desk.handout.suspects.overdue(30)) == {first, second}


def test_trial_that_lasts_makes_way_later_the_more_speaks_against_it(desk: CarefulDesk) -> None:
    """Then others are started beside it."""
    lone = desk.admitted(1, TWICE)
    desk.handout.suspects.record_announced(lone)
    assert desk.pop_all() == [lone]
    other = desk.admitted(2)
    desk.clock.advance(59)
    assert desk.handout.suspects.in_flight_too_long(30) == []
    assert desk.pop_all() == []
    desk.clock.advance(1)
    assert desk.handout.suspects.in_flight_too_long(30) == [lone]
    assert desk.handout.suspects.is_lone(lone)
    desk.handout.suspects.resume_others(lone)
    assert desk.pop_all() == [other]
    desk.handout.fetches.end(lone)
    assert len(desk.handout.suspects) == 0


@pytest.mark.parametrize(
    ("suspicion", "is_proof"),
    [
        (Suspicion(3, 3, True), True),
        (Suspicion(3, 3, False), False),
        (Suspicion(5, 2, True), False),
        (Suspicion(6, 0, True), True),
        (Suspicion(6, 0, False), False),
    ],
)
def test_proof_takes_solitude_and_the_page_or_twice_the_deaths(suspicion: Suspicion, *, is_proof: bool) -> None:
    """With three deaths allowed."""
    assert suspicion.is_proof(3) is is_proof


def test_proven_poison_is_not_handed_out(desk: CarefulDesk) -> None:
    """It waits to become a dead letter, and ends as such, without its errback."""
    held = desk.taken(1)
    held.has_errback = True
    held.suspicion = Suspicion(3, 3, True)
    assert desk.handout.suspects.record_taken(held)
    assert desk.handout.suspects.proven == [held]
    desk.handout.ends.drop_url(held, "poison")
    assert held.stage is Stage.ENDED
    assert [end.counter for end in desk.ended()] == ["dropped:poison"]
