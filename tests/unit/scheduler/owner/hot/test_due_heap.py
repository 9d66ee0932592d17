"""The line of partitions against a list that is sorted each time."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.scheduler.owner.hot.due_heap import ENTRIES_MIN, DueHeap

CHANGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 20)), max_size=60)


@dataclass(eq=False)
class Due:
    """What the line knows of a partition."""

    due_ms: int = 0


def take(line: DueHeap[Due], until_ms: int) -> list[Due]:
    return list(line.take_due(until_ms))


@given(changes=CHANGES, until_ms=st.integers(0, 20))
def test_each_is_taken_once_when_it_says_that_it_is_due(changes: list[tuple[int, int]], until_ms: int) -> None:
    """In order of the last word of each; later words undo earlier ones, in whichever direction."""
    line: DueHeap[Due]
    line, partitions = DueHeap(), [Due() for _ in range(6)]
    noted = set()
    for number, due_ms in changes:
        partitions[number].due_ms = due_ms
        line.add_partition(partitions[number])
        noted.add(number)
    assert line.has_due(until_ms) == any(partitions[n].due_ms <= until_ms for n in noted)
    taken = take(line, until_ms)
    assert set(taken) == {partitions[n] for n in noted if partitions[n].due_ms <= until_ms}
    assert [each.due_ms for each in taken] == sorted(each.due_ms for each in taken)
    assert len(taken) == len(set(taken))
    assert take(line, until_ms) == []
    left = take(line, 20)
    assert {*taken, *left} == {partitions[n] for n in noted}


def test_old_words_are_thrown_away() -> None:
    """However often partitions are due at another time, the line stays short, and has each of them."""
    line: DueHeap[Due]
    line, partitions = DueHeap(), [Due() for _ in range(300)]
    for round_ms in range(100):
        for each in partitions:
            each.due_ms = 10_000 - round_ms
            line.add_partition(each)
        assert len(line._heap) <= max(ENTRIES_MIN, 8 * 300) + 1
    assert len(take(line, 10_000)) == 300
