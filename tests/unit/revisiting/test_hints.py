"""What sites say of how often their pages change, and when they have."""

from __future__ import annotations

import pytest

from bigcrawl.revisiting.hints import CHANGEFREQS, PERIODS_S, changefreq_of, next_look_s

DAY_S = 86_400


def test_every_word_has_its_period() -> None:
    """The rarer, the longer; the codes fit into three bits."""
    assert len(CHANGEFREQS) == len(PERIODS_S) == 8
    assert list(PERIODS_S) == sorted(PERIODS_S)


@pytest.mark.parametrize(
    ("written", "age_s", "word"),
    [
        (" Daily\n", 900 * DAY_S, "daily"),
        ("", None, ""),
        ("often", None, ""),
        ("often", 0, "hourly"),
        ("", 5 * DAY_S, "daily"),
        ("", 40 * DAY_S, "monthly"),
        ("", 9_999 * DAY_S, "never"),
    ],
)
def test_a_page_changes_as_its_site_says_or_as_it_did(written: str, age_s: float | None, word: str) -> None:
    """A word counts before a date; a page that has just changed is not said to do so always."""
    assert changefreq_of(written, age_s) == word


def test_looks_come_when_a_page_has_waited_twice_as_long() -> None:
    """From the soonest time up to when the page is due; their number grows with the logarithm of the wait."""
    looks: list[int] = []
    now_s = 1_000
    while not looks or looks[-1] < 9_000:
        now_s = next_look_s(1_000, 1_010, 9_000, now_s)
        looks.append(now_s)
    assert looks == [1_010, 1_020, 1_040, 1_080, 1_160, 1_320, 1_640, 2_280, 3_560, 6_120, 9_000]


def test_a_look_is_ahead_unless_the_page_is_due() -> None:
    """However late one comes, and whatever the times are."""
    assert next_look_s(1_000, 1_010, 9_000, 5_000) == 6_120
    assert next_look_s(1_000, 1_010, 9_000, 9_500) == 9_000
    assert next_look_s(1_000, 1_000, 1_002, 1_000) == 1_001
