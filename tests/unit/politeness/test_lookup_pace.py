"""New names of a PLD: a minute's worth at once, then at its rate, and each host in its turn."""

from __future__ import annotations

import pytest

from bigcrawl.politeness import lookup_pace
from bigcrawl.politeness.lookup_pace import MINUTE_MS, LookupPace


def turns(pace: LookupPace, pld: str, count: int, share: float = 1.0, now_ms: int = 0) -> list[int]:
    return [pace.wait_ms(pld, f"{number}.{pld}", share, now_ms) for number in range(count)]


def test_a_minutes_names_pass_at_once_and_the_others_one_by_one() -> None:
    """Six a minute: six now, and then one every ten seconds."""
    waits = turns(LookupPace(6), "farm.example", 9)
    assert waits[:6] == [0] * 6
    assert waits[6:] == pytest.approx([10_000, 20_000, 30_000], abs=2)


def test_who_comes_back_in_turn_passes_and_takes_nobodys_place() -> None:
    """A host that was told a time passes then; before it, it is told what is left."""
    pace = LookupPace(6)
    waits = turns(pace, "farm.example", 8)
    assert pace.wait_ms("farm.example", "6.farm.example", 1.0, 4_000) == pytest.approx(6_000, abs=2)
    assert pace.wait_ms("farm.example", "6.farm.example", 1.0, waits[6]) == 0
    assert pace.wait_ms("farm.example", "7.farm.example", 1.0, waits[7]) == 0
    assert repr(pace) == "LookupPace(1 PLDs, 0 hosts wait)"


def test_a_farm_holds_up_nobody_else() -> None:
    """PLDs have nothing to do with each other."""
    pace = LookupPace(6)
    turns(pace, "farm.example", 1_000)
    assert turns(pace, "good.example", 6) == [0] * 6


def test_rate_holds_over_any_time() -> None:
    """However hosts come, not more than a minute's worth and the rate pass."""
    pace = LookupPace(60)
    passed = 0
    for now_ms in range(0, 10 * MINUTE_MS, 500):
        passed += pace.wait_ms("farm.example", f"{now_ms}.farm.example", 1.0, now_ms) == 0
    assert passed <= 60 + 600


@pytest.mark.parametrize(("share", "expected"), [(10, 60), (0.5, 3), (0.1, 1)])
def test_share_is_what_a_budget_is_worth(share: float, expected: int) -> None:
    """Ten times the budget is ten times the names; the least share passes one at a time."""
    assert turns(LookupPace(6), "a.example", 100, share).count(0) == expected


def test_a_quiet_minute_gives_all_back() -> None:
    """Nothing is saved up beyond a minute's worth."""
    pace = LookupPace(6)
    turns(pace, "a.example", 6)
    assert [pace.wait_ms("a.example", f"b{i}", 1.0, 100 * MINUTE_MS) for i in range(7)].count(0) == 6


def test_share_is_asked_for_only_when_all_is_used_up() -> None:
    """As long as a host passes by what is known of its PLD nothing more needs to be known."""
    pace = LookupPace(6)
    for number in range(9):
        share = pace.free_share("a.example", 0)
        assert (share == 1.0) == (pace.wait_ms("a.example", f"{number}", 1.0, 0) == 0)


def test_share_that_is_learnt_late_counts_from_the_beginning() -> None:
    """What was used by the least share is little by a large one."""
    pace = LookupPace(6)
    turns(pace, "a.example", 6)
    assert pace.free_share("a.example", 0) is None
    assert [pace.wait_ms("a.example", f"b{number}", 10.0, 0) for number in range(100)].count(0) == 54
    assert pace.free_share("a.example", 60_000) == 10.0


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many PLDs and hosts there are."""
    monkeypatch.setattr(lookup_pace, "PLDS_KEPT", 3)
    monkeypatch.setattr(lookup_pace, "TURNS_KEPT", 5)
    pace = LookupPace(1)
    for number in range(10):
        turns(pace, f"{number}.example", 4)
    assert repr(pace) == "LookupPace(3 PLDs, 5 hosts wait)"
