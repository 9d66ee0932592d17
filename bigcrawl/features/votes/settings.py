"""The settings of votes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from bigcrawl.setting_group import Group, derived, setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.config import Config

BY_RANKS: Final = "opic"
"""The prioritizer that needs pages' ranks."""


class VoteConfig(Group):
    """Whether votes are counted, and whether pages pass on their ranks; otherwise votes carry only priorities."""

    are_counted: bool = setting(
        "BIGCRAWL_LINK_VOTES",
        False,
        "Whether a URL that waits on disk is raised when it is found again on a page that gives it a higher priority. "
        "Costs 16 bytes in Redis for a link that was not sent recently, and as many on disk for a URL.",
        alike=True,
        title="Votes",
    )
    have_ranks: bool = derived(False)

    def derive(self, given: Mapping[str, Any]) -> Self:
        have_ranks = given["BIGCRAWL_PRIORITIZER"] == BY_RANKS
        return self.replace(are_counted=self.are_counted or have_ranks, have_ranks=have_ranks)


CONFIG: Final = VoteConfig


def is_on(config: Config) -> bool:
    return config.feature_config(VoteConfig).are_counted
