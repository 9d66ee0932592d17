"""When a page that its site lists is looked at."""

from __future__ import annotations

from bigcrawl.revisiting.policies import next_hint_check_s


def test_looks_come_when_a_page_has_waited_twice_as_long() -> None:
    """From the soonest time up to when the page is due; their number grows with the logarithm of the wait."""
    looks: list[int] = []
    now_s = 1_000
    while not looks or looks[-1] < 9_000:
        now_s = next_hint_check_s(1_000, 1_010, 9_000, now_s)
        looks.append(now_s)
    assert looks == [1_010, 1_020, 1_040, 1_080, 1_160, 1_320, 1_640, 2_280, 3_560, 6_120, 9_000]


def test_a_look_is_ahead_unless_the_page_is_due() -> None:
    """However late one comes, and whatever the times are."""
    assert next_hint_check_s(1_000, 1_010, 9_000, 5_000) == 6_120
    assert next_hint_check_s(1_000, 1_010, 9_000, 9_500) == 9_000
    assert next_hint_check_s(1_000, 1_000, 1_002, 1_000) == 1_001
