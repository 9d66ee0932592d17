"""The settings of traps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.table_rows import Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTINGS: Final[tuple[Setting | str, ...]] = (
    "Traps",
    Setting(
        "BIGCRAWL_TRAPS",
        True,
        bool,
        "Lower the budget of pay-level domains that look like crawler traps.",
    ),
    Setting(
        "BIGCRAWL_TRAP_SHARE",
        0.5,
        float,
        "A domain is taken for a trap when at least this share of its latest 256 new URLs is trap-shaped.",
        "of 1",
        0.01,
        1,
    ),
    Setting(
        "BIGCRAWL_TRAP_SAME_SHARE",
        0.5,
        float,
        "A domain is taken for a trap when at least this share of 64 fetched pages duplicates another page.",
        "of 1",
        0.01,
        1,
    ),
    Setting(
        "BIGCRAWL_TRAP_DIVISOR",
        5,
        int,
        "Divides the budget of a trap domain, which stays at least 1.",
        "times",
        1,
        1_000_000,
    ),
    Setting("BIGCRAWL_TRAP_URL_BYTES", 400, int, "Longer URLs are trap-shaped.", "bytes", 32, 65_536),
    Setting(
        "BIGCRAWL_TRAP_REPEATS",
        3,
        int,
        "A URL is trap-shaped if a path segment occurs at least this often.",
        "times",
        2,
        1_000,
    ),
    Setting(
        "BIGCRAWL_TRAP_SEGMENTS",
        12,
        int,
        "A URL is trap-shaped if its path has more segments.",
        "segments",
        1,
        1_000,
    ),
    Setting(
        "BIGCRAWL_TRAP_HOPS",
        50,
        int,
        "A URL is trap-shaped if it is more hops from its start URL.",
        "hops",
        1,
        1_000_000,
    ),
    Setting(
        "BIGCRAWL_TRAP_PARAMETERS",
        4,
        int,
        "A URL is trap-shaped if its query has at least this many parameters.",
        "parameters",
        1,
        1_000,
    ),
    Setting(
        "BIGCRAWL_TRAP_WILDCARD_HOSTS",
        200,
        int,
        "After this many hosts of a domain have been looked up, DNS is asked for a made-up one. If that resolves, "
        "the domain is taken for a trap.",
        "hosts",
        2,
        1_000_000,
    ),
)


@dataclass(frozen=True, slots=True)
class TrapConfig:
    """Which URLs are trap-shaped, and their effect on a PLD's budget; `share` is 0 if traps are off."""

    share: float
    same_share: float
    divisor: int
    url_bytes: int
    repeats: int
    segments: int
    hops: int
    parameters: int
    wildcard_hosts: int


def read(value: Mapping[str, Any]) -> TrapConfig:
    return TrapConfig(
        share=value["BIGCRAWL_TRAP_SHARE"] if value["BIGCRAWL_TRAPS"] else 0.0,
        same_share=value["BIGCRAWL_TRAP_SAME_SHARE"],
        divisor=value["BIGCRAWL_TRAP_DIVISOR"],
        url_bytes=value["BIGCRAWL_TRAP_URL_BYTES"],
        repeats=value["BIGCRAWL_TRAP_REPEATS"],
        segments=value["BIGCRAWL_TRAP_SEGMENTS"],
        hops=value["BIGCRAWL_TRAP_HOPS"],
        parameters=value["BIGCRAWL_TRAP_PARAMETERS"],
        wildcard_hosts=value["BIGCRAWL_TRAP_WILDCARD_HOSTS"],
    )
