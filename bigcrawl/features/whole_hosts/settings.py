"""The settings of whole hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from bigcrawl.exceptions import ConfigError
from bigcrawl.setting_group import Group, setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.config import Config

FRONT_QUEUES_MIN: Final = 4
"""With fewer, links within hosts would share a queue with others."""


class WholeHostConfig(Group):
    """How many hosts are fetched at once, each whole; 0 if hosts take turns. `depth` counts from the entry page."""

    at_once: int = setting(
        "BIGCRAWL_WHOLE_HOSTS",
        0,
        "How many hosts of the crawl are fetched at a time, each whole and breadth-first before another is begun; at "
        "least one for each partition. 0: hosts take turns.",
        (0, 1_000_000, "hosts"),
        alike=True,
        title="Whole hosts",
    )
    depth: int = setting(
        "BIGCRAWL_WHOLE_HOST_DEPTH",
        8,
        "With BIGCRAWL_WHOLE_HOSTS: how many links a page of a host may be away from the page by which it was entered. "
        "Pages further away wait behind all hosts that are known by then. 0: breadth-first over all hosts.",
        (0, 1_000_000, "links"),
        alike=True,
    )

    def derive(self, given: Mapping[str, Any]) -> Self:
        queues = given.get("BIGCRAWL_FRONT_QUEUES", FRONT_QUEUES_MIN)
        if self.at_once and queues < FRONT_QUEUES_MIN:
            raise ConfigError(
                f"BIGCRAWL_FRONT_QUEUES is {queues}; must be at least {FRONT_QUEUES_MIN} with BIGCRAWL_WHOLE_HOSTS, "
                f"which keeps links within a host apart"
            )
        return self


CONFIG: Final = WholeHostConfig


def is_on(config: Config) -> bool:
    return bool(config.feature_config(WholeHostConfig).at_once)
