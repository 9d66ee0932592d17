"""What sites say of their pages raises them by one level at most."""

from __future__ import annotations

import pytest

from bigcrawl.spiders.sitemap_reading import DAY_S, RAISED_MAX, hinted_priority, modified_s, seconds_of

NOW_S = 1_795_608_000.0  # 2026-11-25 12:00 UTC


@pytest.mark.parametrize(
    "written",
    [
        "2026-11-25T12:00:00Z",
        "2026-11-25T13:00+01:00",
        "Wed, 25 Nov 2026 12:00:00 GMT",
        "25 Nov 2026 14:00 +0200",
        "2026-11-25 12:00",
    ],
)
def test_dates_are_read_as_sites_write_them(written: str) -> None:
    """Of feeds and of sitemaps; without a zone they are UTC."""
    assert seconds_of(written) == NOW_S


@pytest.mark.parametrize("written", ["", "today", "9" * 40, "2026-99-99", "Wed, 99 Nov 2026 12:00 GMT", "x" * 99_999])
def test_what_is_no_date_says_nothing(written: str) -> None:
    """And costs nothing, however long."""
    assert seconds_of(written) is None
    assert hinted_priority(written, NOW_S) == 0


@pytest.mark.parametrize(
    ("written", "modified"),
    [
        ("2026-11-25T11:00:00Z", NOW_S - 3_600),
        ("2026-11-25", NOW_S),
        ("2026-11-24", NOW_S - DAY_S // 2 - 1),
        ("2026-11-24T00:00:00Z", NOW_S - DAY_S * 3 // 2),
        ("2026-11-26T02:00:00Z", NOW_S),
        ("2026-11-27T00:00:00Z", None),
        ("soon", None),
        # W3C dates without a day begin with it: a site that says this year every day has not changed every day.
        ("2026-10", NOW_S - 55.5 * DAY_S + DAY_S - 1),
        ("2026", NOW_S - 328.5 * DAY_S + DAY_S - 1),
        ("2026-13", None),
        ("2027", None),
        ("0000", None),
        ("\uff12\uff10\uff12\uff16", None),
    ],
)
def test_a_page_was_changed_at_the_latest_then(written: str, modified: float | None) -> None:
    """A day may be its last second; nothing was changed after now, and a date far ahead is none."""
    assert modified_s(written, NOW_S) == modified


def test_newer_and_more_important_pages_come_first() -> None:
    """Within the level raised; a page that its site calls unimportant is an ordinary one."""
    ages = ["2026-11-25", "2026-11-20", "2026-11-01", "2026-01-01", "2030-01-01"]
    assert [hinted_priority(date, NOW_S) for date in ages] == [6, 4, 2, 0, 0]
    assert [hinted_priority("", NOW_S, p) for p in ("0.1", "0.5", "0.8", "1.0", "9e9", "nan", "inf", "-1", "x")] == [
        *(0, 0, 2, 3, 3),
        *(0, 0, 0, 0),
    ]
    assert hinted_priority("2026-11-25", NOW_S + DAY_S / 2, "1.0") == RAISED_MAX
