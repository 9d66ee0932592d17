"""The settings of mirrors, which need traps and copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from bigcrawl.setting_group import Group, setting

if TYPE_CHECKING:
    from collections.abc import Mapping


class MirrorConfig(Group):
    """When a PLD counts as a mirror, and the divisor of its budget; `share` is 0 if mirrors are off."""

    share: float = setting(
        "BIGCRAWL_TRAP_MIRROR_SHARE",
        0.8,
        "A domain is taken for a mirror when at least this share of its contents is also on a domain with more "
        "in-links. 0: mirrors are not looked for. Needs `BIGCRAWL_CONTENT_SEEN`.",
        (0, 1, "of 1"),
        title="Mirrors",
    )
    divisor: int = setting(
        "BIGCRAWL_TRAP_MIRROR_DIVISOR",
        20,
        "Divides the budget of a mirror, which stays at least 1.",
        (1, 1_000_000, "times"),
    )

    def derive(self, given: Mapping[str, Any]) -> Self:
        are_wanted = given.get("BIGCRAWL_TRAPS", True) and given.get("BIGCRAWL_CONTENT_SEEN", "exact") != "off"
        return self if are_wanted else self.replace(share=0.0)


CONFIG: Final = MirrorConfig
