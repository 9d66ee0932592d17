"""The settings of mirrors, which need traps and copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.table_rows import Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTINGS: Final[tuple[Setting | str, ...]] = (
    "Mirrors",
    Setting(
        "BIGCRAWL_TRAP_MIRROR_SHARE",
        0.8,
        float,
        "A domain is taken for a mirror when at least this share of its contents is also on a domain with more "
        "in-links. 0: mirrors are not looked for. Needs `BIGCRAWL_CONTENT_SEEN`.",
        "of 1",
        0,
        1,
    ),
    Setting(
        "BIGCRAWL_TRAP_MIRROR_DIVISOR",
        20,
        int,
        "Divides the budget of a mirror, which stays at least 1.",
        "times",
        1,
        1_000_000,
    ),
)


@dataclass(frozen=True, slots=True)
class MirrorConfig:
    share: float
    divisor: int


def read(value: Mapping[str, Any]) -> MirrorConfig:
    are_wanted = value.get("BIGCRAWL_TRAPS", True) and value.get("BIGCRAWL_CONTENT_SEEN", "exact") != "off"
    return MirrorConfig(
        share=value["BIGCRAWL_TRAP_MIRROR_SHARE"] if are_wanted else 0.0,
        divisor=value["BIGCRAWL_TRAP_MIRROR_DIVISOR"],
    )
