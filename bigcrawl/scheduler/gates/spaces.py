"""Spaces that several hosts share (step 10): pay-level domains, and groups that a function of the user's defines.

Starts in one space keep a gap over all nodes, in addition to the delays of host and server. Each space has a gate, as a
server has (`gates.start_gates`). By default there are no spaces, and nothing is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.given import imported

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.config import PaceConfig
    from bigcrawl.scheduler.gates.delays import Paces

    Group = Callable[[str, str], str | None]
    from bigcrawl.scheduler.records.passage import Space


GROUP_BYTES_MAX: Final = 200


class Spaces:
    """Which spaces a URL belongs to."""

    def __init__(self, config: PaceConfig, paces: Paces, pld_of: Callable[[str], str]) -> None:
        """Find the user's function.

        Raises:
            ConfigError: there is no such function, or it does not work.
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
        """Whether any URL belongs to a space."""
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
    """Return the function with a dotted path, after a trial call; None if there is no path.

    Raises:
        ConfigError: there is no such function, or it returns neither text nor None.
    """
    if not path:
        return None
    function = imported("BIGCRAWL_GROUP", path)
    try:
        found = function("www.example.com", "http://www.example.com/")
    except Exception as error:
        raise ConfigError(f"BIGCRAWL_GROUP is {path!r}, which failed in a trial: {error!r}") from error
    if found is not None and not isinstance(found, str):
        raise ConfigError(f"BIGCRAWL_GROUP is {path!r}, which returned {found!r}; must return text, or None")
    checked: Group = function
    return checked
