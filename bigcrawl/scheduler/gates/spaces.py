"""Spaces that several hosts share: PLDs and users' groups, with a gap between starts over all nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.given import import_object

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.config import PaceConfig
    from bigcrawl.scheduler.gates.delays import HostDelays

    Group = Callable[[str, str], str | None]
    from bigcrawl.scheduler.records.passage import Space


GROUP_BYTES_MAX: Final = 200


class PolitenessSpaces:
    def __init__(self, config: PaceConfig, paces: HostDelays, pld_of: Callable[[str], str]) -> None:
        self._pld_delay_ms = config.pld_delay_ms
        self._group = group_function(config.group)
        self._group_delay_ms = config.group_delay_ms
        self._paces = paces
        self._pld_of = pld_of

    @property
    def are_kept(self) -> bool:
        return bool(self._pld_delay_ms or self._group or self._paces.delays.has_pld_delays)

    def spaces_of(self, host: str, url: str) -> tuple[Space, ...]:
        spaces = []
        ruled_ms = self._paces.delays.of_host(host).pld_delay_ms
        pld_delay_ms = self._pld_delay_ms if ruled_ms is None else ruled_ms
        if pld_delay_ms:
            spaces.append((f"pld {self._pld_of(host)}", pld_delay_ms))
        if self._group is not None and self._group_delay_ms and (group := self._group(host, url)):
            spaces.append((f"group {str(group)[:GROUP_BYTES_MAX]}", self._group_delay_ms))
        return tuple(spaces)


def group_function(path: str | None) -> Group | None:
    """Return the function with a dotted path, if any, after a trial call. Raises ConfigError."""
    if not path:
        return None
    function = import_object("BIGCRAWL_GROUP", path)
    try:
        found = function("www.example.com", "http://www.example.com/")
    except Exception as error:
        raise ConfigError(f"BIGCRAWL_GROUP is {path!r}, which failed in a trial: {error!r}") from error
    if found is not None and not isinstance(found, str):
        raise ConfigError(f"BIGCRAWL_GROUP is {path!r}, which returned {found!r}; must return text, or None")
    checked: Group = function
    return checked
