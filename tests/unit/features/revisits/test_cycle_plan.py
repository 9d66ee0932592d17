"""When cycles begin."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from bigcrawl.config import read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.features.revisits.cycle_plan import parse_cycles

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, zone: ZoneInfo = BERLIN) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp())


@pytest.mark.parametrize(
    ("text", "now", "last", "following"),
    [
        ("02:00", "2026-06-10T01:59:59", "2026-06-09T02:00", "2026-06-10T02:00"),
        ("02:00", "2026-06-10T02:00:00", "2026-06-10T02:00", "2026-06-11T02:00"),
        ("02:00; 14:30 Mon-Fri", "2026-06-10T03:00", "2026-06-10T02:00", "2026-06-10T14:30"),
        ("14:30 Sat-Sun", "2026-06-10T03:00", "2026-06-07T14:30", "2026-06-13T14:30"),
        ("14:30 Wed", "2026-06-10T14:29", "2026-06-03T14:30", "2026-06-10T14:30"),
        ("12:00", "2026-03-29T11:00", "2026-03-28T12:00", "2026-03-29T12:00"),
    ],
)
def test_cycles_begin_at_their_times(text: str, now: str, last: str, following: str) -> None:
    """Each time of day on its weekdays, in the time zone, also when clocks change; a begin belongs to its cycle."""
    assert parse_cycles(text, "Europe/Berlin").around(at(now)) == (at(last), at(following))


def test_periods_are_counted_from_1970_on() -> None:
    """So all nodes begin together."""
    plan = parse_cycles("every 6h", "UTC")
    assert plan.around(21_600 * 5 + 17) == (21_600 * 5, 21_600 * 6)
    assert plan.around(21_600 * 6) == (21_600 * 6, 21_600 * 7)


def test_a_longer_wait_leaves_cycles_out() -> None:
    """A page that waits a week comes with the seventh cycle, however long its own has taken."""
    plan = parse_cycles("02:00", "UTC")
    begun_s = 20_000 * 86_400 + 7_200
    for visited_s in (begun_s, begun_s + 50_000):
        assert plan.due_s(visited_s) == begun_s + 86_400
        assert plan.due_s(visited_s, 3_600) == begun_s + 86_400
        assert plan.due_s(visited_s, 7 * 86_400) == begun_s + 7 * 86_400
        assert plan.due_s(visited_s, 7 * 86_400 + 1) == begun_s + 8 * 86_400


@pytest.mark.parametrize("text", ["", "25:00", "02:60", "daily", "every 1s", "02:00 Mon Tue", "every 6", "every 0s"])
def test_what_is_no_time_is_refused(text: str) -> None:
    """With an example."""
    with pytest.raises(ConfigError, match=r"must be parts such as 02:00, 14:30 Mon-Fri or every 6h"):
        read_config({"BIGCRAWL_REVISIT": "cycles", "BIGCRAWL_CYCLES": text})


def test_a_command_that_cannot_be_split_is_refused() -> None:
    """Before the crawl starts."""
    with pytest.raises(ConfigError, match="must be a command"):
        read_config(
            {"BIGCRAWL_REVISIT": "cycles", "BIGCRAWL_CYCLES": "02:00", "BIGCRAWL_CYCLE_COMMAND": "sh 'x"},
        )
