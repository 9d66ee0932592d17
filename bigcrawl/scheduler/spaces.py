"""Spaces that several hosts share (step 10): that of a pay-level domain, and that of a group by a user's own key.

Starts in one space keep a gap over all nodes, beside the delays of host and server: Redis grants a start that keeps
all spaces of a URL (`pass_spaces.lua`). None by default, and then nothing is asked.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.config import PaceConfig
    from bigcrawl.scheduler.paces import Paces

    Group = Callable[[str, str], str | None]

Space = tuple[str, int]
"""Its name, and the gap between starts in it, ms."""

MARGIN_MS_MAX: Final = 250
GROUP_BYTES_MAX: Final = 200


def with_margin(spaces: tuple[Space, ...]) -> tuple[Space, ...]:
    """The gaps to ask Redis for: a tenth more, a quarter of a second at most.

    Half of that is by how much a start may be late, and half is for what lies between a start and its arrival.
    """
    return tuple((name, gap_ms + _margin_ms(gap_ms)) for name, gap_ms in spaces)


def in_the_node(spaces: tuple[Space, ...]) -> tuple[Space, ...]:
    """The gaps that a node keeps between its own starts, late ones too."""
    return tuple((name, gap_ms + _margin_ms(gap_ms) // 2) for name, gap_ms in spaces)


def late_ms(spaces: tuple[Space, ...]) -> int:
    """By how much a start may be late without coming too close to the next one."""
    return min(_margin_ms(gap_ms) // 2 for _, gap_ms in spaces)


def _margin_ms(gap_ms: int) -> int:
    return min(MARGIN_MS_MAX, gap_ms // 10)


class Spaces:
    """Which spaces a URL belongs to."""

    def __init__(self, config: PaceConfig, paces: Paces, pld_of: Callable[[str], str]) -> None:
        """Find the user's function.

        Raises:
            ConfigError: there is none of that name, or it does not work.
        """
        self._pld_delay_ms = config.pld_delay_ms
        self._group = group_function(config.group)
        self._group_delay_ms = config.group_delay_ms
        self._paces = paces
        self._pld_of = pld_of

    def __repr__(self) -> str:
        return f"<Spaces pld={self._pld_delay_ms} group={self._group}>"

    @property
    def are_kept(self) -> bool:
        """Whether any URL belongs to one."""
        return bool(self._pld_delay_ms or self._group or self._paces.delays.has_pld_delays)

    def of(self, host: str, url: str) -> tuple[Space, ...]:
        """The spaces of a URL."""
        spaces = []
        ruled_ms = self._paces.delays.of_host(host).pld_delay_ms
        pld_delay_ms = self._pld_delay_ms if ruled_ms is None else ruled_ms
        if pld_delay_ms:
            spaces.append((f"pld {self._pld_of(host)}", pld_delay_ms))
        if self._group is not None and self._group_delay_ms and (group := self._group(host, url)):
            spaces.append((f"group {str(group)[:GROUP_BYTES_MAX]}", self._group_delay_ms))
        return tuple(spaces)


def group_function(path: str | None) -> Group | None:
    """Return the function of a dotted path, tried once; None for no path.

    Raises:
        ConfigError: there is none, or it does not return text or None.
    """
    if not path:
        return None
    module, _, name = path.rpartition(".")
    try:
        function: Any = getattr(import_module(module), name)
        found = function("www.example.com", "http://www.example.com/")
    except Exception as error:
        raise ConfigError(f"BIGCRAWL_GROUP is {path!r}, which cannot be called: {error!r}") from error
    if found is not None and not isinstance(found, str):
        raise ConfigError(f"BIGCRAWL_GROUP is {path!r}, which returned {found!r}; must return text, or None")
    checked: Group = function
    return checked
