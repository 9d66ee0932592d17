"""The settings of revisits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.revisiting.policies import NEVER, POLICIES
from bigcrawl.table_rows import Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTINGS: Final[tuple[Setting | str, ...]] = (
    "Visits again",
    Setting(
        "BIGCRAWL_REVISIT",
        NEVER,
        str,
        "When a page is visited again: never; periodic, after the same wait for all; change-rate, when it has probably "
        "changed; quality, the same, but pages of no higher priority change no faster than the median page; freshness, "
        "so that all pages together are as fresh as possible with one visit in BIGCRAWL_REVISIT_SECONDS each.",
        choices=POLICIES,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_REVISIT_SECONDS",
        604_800.0,
        float,
        "Wait between the visits of a page: of every page with periodic, on the average with freshness, and from the "
        "first to the second visit with all.",
        "s",
        1,
        315_360_000,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_REVISIT_SECONDS_MIN",
        300.0,
        float,
        "No page is visited again sooner, however often it changes.",
        "s",
        1,
        315_360_000,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_REVISIT_SECONDS_MAX",
        7_776_000.0,
        float,
        "No page waits longer for its next visit, also if it is gone.",
        "s",
        1,
        315_360_000,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_REVISIT_VISITS_MAX",
        0,
        int,
        "How often a page is visited in all; the crawl ends when all pages were. 0: without end.",
        "visits",
        0,
        1_000_000,
        alike=True,
    ),
)


@dataclass(frozen=True, slots=True)
class RevisitConfig:
    """Whether and when pages are visited again; `rule` is one of `bigcrawl.revisiting.policies`, times are seconds."""

    rule: str
    usual_s: float
    shortest_s: float
    longest_s: float
    visits_max: int


def read(value: Mapping[str, Any]) -> RevisitConfig:
    config = RevisitConfig(
        rule=value["BIGCRAWL_REVISIT"],
        usual_s=value["BIGCRAWL_REVISIT_SECONDS"],
        shortest_s=value["BIGCRAWL_REVISIT_SECONDS_MIN"],
        longest_s=value["BIGCRAWL_REVISIT_SECONDS_MAX"],
        visits_max=value["BIGCRAWL_REVISIT_VISITS_MAX"],
    )
    if config.rule != NEVER and not config.shortest_s <= config.usual_s <= config.longest_s:
        raise ConfigError(
            f"BIGCRAWL_REVISIT_SECONDS is {config.usual_s:g}; must be between BIGCRAWL_REVISIT_SECONDS_MIN, "
            f"{config.shortest_s:g}, and BIGCRAWL_REVISIT_SECONDS_MAX, {config.longest_s:g}"
        )
    return config
