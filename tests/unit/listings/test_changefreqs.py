"""How often pages change, as their sites say."""

from __future__ import annotations

import pytest

from bigcrawl.listings.changefreqs import CHANGEFREQS, PERIODS_S, changefreq_of

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
