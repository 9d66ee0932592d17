"""The row types of the tables of settings, stats and limits; features have such rows too."""

from __future__ import annotations

from typing import Final, NamedTuple

COUNT_MAX: Final = (1 << 63) - 1
"""The largest value of a limit without another bound."""


class Setting(NamedTuple):
    """One setting. `default` None means unset; `low` and `high` are inclusive.

    A dict is written as JSON; a list as JSON, as items between commas, or with `has_file` as the name of a file.
    """

    name: str
    default: object
    type: type
    meaning: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    fixed: bool = False
    alike: bool = False
    has_file: bool = False


class Stat(NamedTuple):
    """One stat; `set_by` is the module below `bigcrawl/`, or the Lua script, that counts it."""

    key: str
    kind: str
    unit: str
    meaning: str
    set_by: str
    values: tuple[tuple[str, str], ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys, with each listed value in place of the placeholder."""
        if not self.values:
            return (self.key,)
        start, end = self.key.index("{"), self.key.index("}") + 1
        return tuple(self.key[:start] + value + self.key[end:] for value, _ in self.values)


class LimitRow(NamedTuple):
    """A limit that a rule may set by hand, from `lowest` to `highest`."""

    name: str
    highest: int
    unit: str
    meaning: str
    lowest: int = 0
