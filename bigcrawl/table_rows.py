"""The rows of the tables of settings, stats and limits, which features have too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

COUNT_MAX: Final = (1 << 63) - 1
"""The largest value of a limit without another bound."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `default` None means unset; `low` and `high` are inclusive; `choices` lists all values of a str.

    The text of a dict is JSON. The text of a list is JSON, items separated by commas, or, with `has_file`, the name of
    a file.
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


@dataclass(frozen=True, slots=True)
class Stat:
    """One row; `set_by` is the counting module below `bigcrawl/`, or Lua script."""

    key: str
    kind: str
    unit: str
    meaning: str
    set_by: str
    values: tuple[tuple[str, str], ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The key with each listed value instead of the placeholder; the key itself without values."""
        if not self.values:
            return (self.key,)
        start, end = self.key.index("{"), self.key.index("}") + 1
        return tuple(self.key[:start] + value + self.key[end:] for value, _ in self.values)


@dataclass(frozen=True, slots=True)
class LimitRow:
    """A limit that a rule may set by hand, from 0 to `highest`."""

    name: str
    highest: int
    unit: str
    meaning: str
