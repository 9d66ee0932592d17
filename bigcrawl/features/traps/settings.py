"""The settings of traps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from bigcrawl.setting_group import Group, setting

if TYPE_CHECKING:
    from collections.abc import Mapping


class TrapConfig(Group):
    """Which URLs look like a trap's, and how they lower their PLD's budget; `share` is 0 if traps are off."""

    is_on: bool = setting(
        "BIGCRAWL_TRAPS", True, "Lower the budget of pay-level domains that look like crawler traps.", title="Traps"
    )
    share: float = setting(
        "BIGCRAWL_TRAP_SHARE",
        0.5,
        "A domain is taken for a trap when at least this share of its latest 256 new URLs is trap-shaped.",
        (0.01, 1, "of 1"),
    )
    same_share: float = setting(
        "BIGCRAWL_TRAP_SAME_SHARE",
        0.5,
        "A domain is taken for a trap when at least this share of 64 fetched pages duplicates another page.",
        (0.01, 1, "of 1"),
    )
    divisor: int = setting(
        "BIGCRAWL_TRAP_DIVISOR",
        5,
        "Divides the budget of a trap domain, which stays at least 1.",
        (1, 1_000_000, "times"),
    )
    url_bytes: int = setting("BIGCRAWL_TRAP_URL_BYTES", 400, "Longer URLs are trap-shaped.", (32, 65_536, "bytes"))
    repeats: int = setting(
        "BIGCRAWL_TRAP_REPEATS",
        3,
        "A URL is trap-shaped if a path segment occurs at least this often.",
        (2, 1_000, "times"),
    )
    segments: int = setting(
        "BIGCRAWL_TRAP_SEGMENTS", 12, "A URL is trap-shaped if its path has more segments.", (1, 1_000, "segments")
    )
    hops: int = setting(
        "BIGCRAWL_TRAP_HOPS", 50, "A URL is trap-shaped if it is more hops from its start URL.", (1, 1_000_000, "hops")
    )
    parameters: int = setting(
        "BIGCRAWL_TRAP_PARAMETERS",
        4,
        "A URL is trap-shaped if its query has at least this many parameters.",
        (1, 1_000, "parameters"),
    )
    wildcard_hosts: int = setting(
        "BIGCRAWL_TRAP_WILDCARD_HOSTS",
        200,
        "After this many hosts of a domain have been looked up, DNS is asked for a made-up one. If that resolves, "
        "the domain is taken for a trap.",
        (2, 1_000_000, "hosts"),
    )

    def derive(self, given: Mapping[str, Any]) -> Self:
        return self if self.is_on else self.replace(share=0.0)


CONFIG: Final = TrapConfig
