"""A dict that forgets what was remembered longest ago."""

from __future__ import annotations

from bigcrawl.bounded import BoundedDict


def test_what_was_remembered_longest_ago_is_forgotten() -> None:
    """Beyond the bound one goes for each that comes; what is remembered again counts as new, what is read does not."""
    known: BoundedDict[str, int] = BoundedDict(3)
    for number, name in enumerate("abc"):
        known.remember(name, number)
    known.remember("a", 7)
    assert known["b"] == 1
    known.remember("d", 4)
    assert list(known.items()) == [("c", 2), ("a", 7), ("d", 4)]


def test_forgotten_by_hand_makes_room() -> None:
    """What is popped takes no place."""
    known: BoundedDict[int, int] = BoundedDict(2)
    for number in range(5):
        known.remember(number, number)
        known.pop(number - 1, None)
    assert list(known) == [4]
