"""The settings of votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.table_rows import Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTINGS: Final[tuple[Setting | str, ...]] = (
    "Votes",
    Setting(
        "BIGCRAWL_LINK_VOTES",
        False,
        bool,
        "Whether a URL that waits on disk is raised when it is found again on a page that gives it a higher priority. "
        "Costs 16 bytes in Redis for a link that was not sent lately, and as many on disk for a URL.",
        alike=True,
    ),
)

BY_RANKS: Final = "opic"
"""The prioritizer that needs pages' ranks."""


@dataclass(frozen=True, slots=True)
class VoteConfig:
    """Whether votes are counted, and whether pages distribute their ranks. If not, votes only carry priorities."""

    are_counted: bool
    have_ranks: bool


def read(value: Mapping[str, Any]) -> VoteConfig:
    have_ranks = value["BIGCRAWL_PRIORITIZER"] == BY_RANKS
    return VoteConfig(have_ranks or value["BIGCRAWL_LINK_VOTES"], have_ranks)
