"""Tables and plots as data, before anybody knows what they look like."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS: Final = ("text", "count", "bytes", "share", "number", "seconds", "time")
"""What a column has: text; whole numbers; bytes; shares from 0 to 1; other numbers; seconds; Unix seconds."""

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; `has_bar`: its shares are drawn too."""

    name: str
    kind: str = "count"
    has_bar: bool = False

    def __post_init__(self) -> None:
        assert self.kind in KINDS, self.kind


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: identifies it in the JSON.
        title: for readers.
        columns: of each row; the first one names it.
        rows: a cell for each column; None for what is not known.
        note: what the numbers mean, and what they leave out.
        source: the table of a paper that it follows; empty for none.
        is_long: whether readers must open it.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]
    note: str = ""
    source: str = ""
    is_long: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the table for programs, with plain numbers."""
        return {
            "title": self.title,
            "source": self.source,
            "note": self.note,
            "columns": [{"name": column.name, "kind": column.kind} for column in self.columns],
            "rows": [list(row) for row in self.rows],
        }


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot of lines over a common x.

    Attributes:
        name: identifies it in the JSON.
        title: for readers.
        x: ascending; a time in Unix seconds if `is_time`.
        series: the name of each line and its values, None for a gap.
        x_label, y_label: what is on the axes, with units.
        is_time: whether x is a time.
        is_log: whether both axes are logarithmic; then x and all values are positive.
    """

    name: str
    title: str
    x: Sequence[float]
    series: dict[str, Sequence[float | None]]
    x_label: str = ""
    y_label: str = ""
    is_time: bool = True
    is_log: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the plot for programs, and for the script of the page."""
        return {
            "title": self.title,
            "x": list(self.x),
            "series": {name: list(values) for name, values in self.series.items()},
            "x_label": self.x_label,
            "y_label": self.y_label,
            "is_time": self.is_time,
            "is_log": self.is_log,
        }


@dataclass(frozen=True, slots=True)
class Section:
    """Some tables and plots with a heading. There is a table at least; plots come behind the first."""

    name: str
    title: str
    about: str
    tables: Sequence[Table]
    plots: Sequence[Plot] = field(default=())


NAME_VALUE: Final = (Column("figure", "text"), Column("value", "text"))


def share_of(part: float, whole: float) -> float | None:
    """Return part / whole, in at most six digits; None if there is nothing to divide by."""
    return round(part / whole, 6) if whole else None
