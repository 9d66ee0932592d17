"""Speeds by time of day: what a text means, at which moment, and what is refused with which words."""

from __future__ import annotations

import math
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.politeness.speed_words import parse_speed
from bigcrawl.politeness.start_permits import UNLIMITED, Speed

BERLIN = "Europe/Berlin"
POLYBOT = "80/s 08:00-18:00 Mon-Fri; 180/s"


def moment(text: str, zone: str = "UTC") -> int:
    """Milliseconds since the epoch of a local time; 2026-11-23 is a Monday."""
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def pages(text: str, when: str, zone: str = "UTC") -> float:
    return parse_speed(text, zone).at(moment(when, zone)).pages


def refusal(text: str, zone: str = "UTC") -> str:
    with pytest.raises(ConfigError) as caught:
        parse_speed(text, zone)
    return str(caught.value)


@pytest.mark.parametrize(
    ("when", "wanted"),
    [
        ("2026-11-23T07:59:59", 180),
        ("2026-11-23T08:00", 80),
        ("2026-11-27T17:59:59", 80),
        ("2026-11-27T18:00", 180),
        ("2026-11-28T12:00", 180),
        ("2026-11-29T12:00", 180),
    ],
)
def test_the_first_part_that_fits_is_in_force(when: str, wanted: float) -> None:
    """Slow in working hours from the first minute to before the last, fast otherwise: PolyBot's rates."""
    assert pages(POLYBOT, when) == wanted


def test_where_no_part_fits_there_is_no_limit() -> None:
    """A plan that only speaks of the day says nothing of the night; an empty one nothing at all."""
    assert parse_speed("80/s 08:00-18:00").at(moment("2026-11-23T20:00")) == UNLIMITED
    assert parse_speed("").at(0) == parse_speed(" ; ").at(0) == UNLIMITED


def test_a_time_over_midnight_belongs_to_the_day_on_which_it_begins() -> None:
    """Friday's night goes on until Saturday morning, and Friday morning is Thursday's."""
    plan = "10/s 22:00-06:00 Fri; 99/s"
    assert pages(plan, "2026-11-27T05:00") == 99
    assert pages(plan, "2026-11-27T22:00") == 10
    assert pages(plan, "2026-11-28T05:59") == 10
    assert pages(plan, "2026-11-28T06:00") == 99
    assert pages(plan, "2026-11-28T23:00") == 99


def test_days_may_go_over_the_end_of_the_week_and_stand_apart() -> None:
    """Sat-Mon is three days, Sun to Monday included; several words of days add up."""
    assert [pages("1/s Sat-Mon; 2/s", f"2026-11-{day}T12:00") for day in range(23, 30)] == [1, 2, 2, 2, 2, 1, 1]
    assert [pages("1/s Mon,Wed Fri; 2/s", f"2026-11-{day}T12:00") for day in range(23, 30)] == [1, 2, 1, 2, 1, 2, 2]


def test_times_are_those_of_the_zone_summer_time_included() -> None:
    """18:00 in Berlin is 17:00 UTC in winter and 16:00 in summer."""
    plan = parse_speed("80/s 08:00-18:00; 180/s", BERLIN)
    assert [plan.at(moment(f"2026-11-23T{hour}:30")).pages for hour in (16, 17)] == [80, 180]
    assert [plan.at(moment(f"2026-07-20T{hour}:30")).pages for hour in (15, 16)] == [80, 180]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("80/s", Speed(80)),
        ("0.5/s", Speed(0.5)),
        ("30/min", Speed(0.5)),
        ("36/h", Speed(0.01)),
        ("2MB/s", Speed(body_bytes=2e6)),
        ("2mib/s", Speed(body_bytes=2 * 2**20)),
        ("6KB/min", Speed(body_bytes=100)),
        ("500B/s", Speed(body_bytes=500)),
        ("80/s, 2MB/s", Speed(80, 2e6)),
        ("2GB/s 80/s 70/s", Speed(70, 2e9)),
        ("0/s", Speed(0)),
        ("unlimited", UNLIMITED),
    ],
)
def test_rates_of_pages_and_of_bytes(text: str, wanted: Speed) -> None:
    """Pages and bytes, a second, minute or hour; of two of one kind the lower holds."""
    assert parse_speed(text).at(0) == wanted


def test_nothing_of_either_is_a_pause() -> None:
    """0 pages or 0 bytes a second pause; no limit does not."""
    assert Speed(0).is_paused
    assert Speed(body_bytes=0).is_paused
    assert not UNLIMITED.is_paused
    assert not UNLIMITED.is_limited
    assert Speed(math.inf, 1).is_limited
    assert [str(speed) for speed in (Speed(0), UNLIMITED, Speed(80, 2e6))] == [
        "paused",
        "unlimited",
        "80 pages/s and 2 MB/s",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("fast", "'fast' is neither a rate, nor a time, nor a day"),
        ("80", "'80' is neither"),
        ("-80/s", "'-80/s' is neither"),
        ("80/s; Mon-Fri", "it has no rate"),
        ("80/s 08:00-18:00 19:00-20:00", "it has two times"),
        ("80/s 08:00-08:00", "'08:00-08:00' is not a valid time of day"),
        ("80/s 24:00-08:00", "is not a valid time of day"),
        ("80/s 08:60-09:00", "is not a valid time of day"),
        ("80/s 08:00-25:00", "is not a valid time of day"),
        ("80/s Montag", "'montag' is neither"),
        ("2TB/s", "has the unit 'tb'"),
        ("9999999999999/s", "is more than any crawl needs"),
        ("\u0668\u0660/s", "is neither"),
    ],
)
def test_what_is_no_plan_is_refused_with_an_example(text: str, fault: str) -> None:
    """The message names the setting, the part, the fault, and something that would be right."""
    message = refusal(text)
    assert message.startswith("BIGCRAWL_SPEED has ")
    assert fault in message
    assert "80/s 08:00-18:00 Mon-Fri" in message


@pytest.mark.parametrize("zone", ["Europe/Nowhere", "", "/etc/passwd", "../UTC", "a\0b"])
def test_an_unknown_time_zone_is_refused(zone: str) -> None:
    """A zone that this machine does not know is named, with what may be missing."""
    assert "BIGCRAWL_TIME_ZONE is" in refusal("80/s", zone)


def test_a_day_may_end_at_24() -> None:
    """24:00 is the end of a day, for who does not want to write 00:00."""
    assert pages("1/s 18:00-24:00; 2/s", "2026-11-23T23:59:59") == 1
    assert pages("1/s 18:00-00:00; 2/s", "2026-11-23T23:59:59") == 1
    assert pages("1/s 18:00-00:00; 2/s", "2026-11-24T00:00") == 2
