"""The settings of revisits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from bigcrawl.exceptions import ConfigError
from bigcrawl.revisiting.rules import NEVER, RULES
from bigcrawl.setting_group import Group, setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.config import Config


class RevisitConfig(Group):
    """Whether and when pages are visited again; `rule` is one of `bigcrawl.revisiting.rules`, times are seconds."""

    rule: str = setting(
        "BIGCRAWL_REVISIT",
        NEVER,
        "When a page is visited again: never; periodic, after the same wait for all; change-rate, when it has probably "
        "changed; quality, the same, but pages of no higher priority change no faster than the median page; freshness, "
        "so that all pages together are as fresh as possible with one visit in BIGCRAWL_REVISIT_SECONDS each.",
        choices=RULES,
        alike=True,
        title="Visits again",
    )
    usual_s: float = setting(
        "BIGCRAWL_REVISIT_SECONDS",
        604_800.0,
        "Wait between the visits of a page: of every page with periodic, on the average with freshness, and from the "
        "first to the second visit with all.",
        (1, 315_360_000, "s"),
        alike=True,
    )
    shortest_s: float = setting(
        "BIGCRAWL_REVISIT_SECONDS_MIN",
        300.0,
        "No page is visited again sooner, however often it changes.",
        (1, 315_360_000, "s"),
        alike=True,
    )
    longest_s: float = setting(
        "BIGCRAWL_REVISIT_SECONDS_MAX",
        7_776_000.0,
        "No page waits longer for its next visit, also if it is gone.",
        (1, 315_360_000, "s"),
        alike=True,
    )
    visits_max: int = setting(
        "BIGCRAWL_REVISIT_VISITS_MAX",
        0,
        "How often a page is visited in all; the crawl ends when all pages were. 0: without end.",
        (0, 1_000_000, "visits"),
        alike=True,
    )

    def derive(self, given: Mapping[str, Any]) -> Self:
        if self.rule != NEVER and not self.shortest_s <= self.usual_s <= self.longest_s:
            raise ConfigError(
                f"BIGCRAWL_REVISIT_SECONDS is {self.usual_s:g}; must be between BIGCRAWL_REVISIT_SECONDS_MIN, "
                f"{self.shortest_s:g}, and BIGCRAWL_REVISIT_SECONDS_MAX, {self.longest_s:g}"
            )
        return self


CONFIG: Final = RevisitConfig


def is_on(config: Config) -> bool:
    return config.feature_config(RevisitConfig).rule != NEVER
