"""The settings of revisits."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final, Self

from bigcrawl.exceptions import ConfigError
from bigcrawl.revisiting.rules import CYCLES, NEVER, RULES
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
        "so that all pages together are as fresh as possible with one visit in BIGCRAWL_REVISIT_SECONDS each; cycles, "
        "once in each cycle of BIGCRAWL_CYCLES.",
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
    own_wait: str = setting(
        "BIGCRAWL_REVISIT_WAIT",
        "",
        "Import path of a function that decides about the next visit of a page: it is called with what is known of the "
        "page (a `bigcrawl.revisiting.visit.Visit`) and the wait that the rule above gives, and returns a wait in "
        "seconds, 0 for no further visit. See docs/guide/recrawl.md.",
        alike=True,
    )
    visits_max: int = setting(
        "BIGCRAWL_REVISIT_VISITS_MAX",
        0,
        "How often a page is visited in all; the crawl ends when all pages were. 0: without end.",
        (0, 1_000_000, "visits"),
        alike=True,
    )

    cycles: str = setting(
        "BIGCRAWL_CYCLES",
        "",
        'When cycles begin, with `BIGCRAWL_REVISIT = "cycles"`: times of day, each with weekdays or without, in '
        "BIGCRAWL_TIME_ZONE, such as `02:00; 14:30 Mon-Fri`; or `every 6h`.",
        alike=True,
    )
    cycle_command: str = setting(
        "BIGCRAWL_CYCLE_COMMAND",
        "",
        "Command that one node runs at the end of each cycle, without a shell and with a JSON object about the cycle "
        "on its standard input. The crawl does not end before it. Empty: none.",
    )

    def derive(self, given: Mapping[str, Any]) -> Self:
        if self.rule == CYCLES:
            self._check_cycles(given["BIGCRAWL_TIME_ZONE"])
        if self.rule not in (NEVER, CYCLES) and not self.shortest_s <= self.usual_s <= self.longest_s:
            raise ConfigError(
                f"BIGCRAWL_REVISIT_SECONDS is {self.usual_s:g}; must be between BIGCRAWL_REVISIT_SECONDS_MIN, "
                f"{self.shortest_s:g}, and BIGCRAWL_REVISIT_SECONDS_MAX, {self.longest_s:g}"
            )
        return self

    def _check_cycles(self, zone: str) -> None:
        from bigcrawl.features.revisits.cycle_plan import parse_cycles

        parse_cycles(self.cycles, zone)
        try:
            shlex.split(self.cycle_command)
        except ValueError as error:
            raise ConfigError(f"BIGCRAWL_CYCLE_COMMAND is {self.cycle_command!r}; must be a command: {error}") from None


CONFIG: Final = RevisitConfig


def is_on(config: Config) -> bool:
    return config.feature_config(RevisitConfig).rule != NEVER
