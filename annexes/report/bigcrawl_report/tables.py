"""Tables and plots as data, independent of their appearance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KINDS: Final = ("text", "count", "bytes", "share", "number", "seconds", "time")
"""A count is whole; a share is from 0 to 1; a time is in Unix seconds."""

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column; with `has_bar`, its shares are also drawn as bars."""

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
        columns: the first one names the row.
        rows: None for an unknown cell.
        source: the table of a paper that it follows; empty for none.
        is_long: whether the page shows it folded.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]
    note: str = ""
    source: str = ""
    is_long: bool = False

    def to_json(self) -> dict[str, Any]:
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
        x: ascending; Unix seconds if `is_time`.
        series: the values of each line by its name, None for a gap.
        is_log: whether both axes are logarithmic; then all values are positive.
        stops: periods in which nothing ran, in Unix seconds.
        events: what happened, as `scrapy frontier events` lists it.
    """

    name: str
    title: str
    x: Sequence[float]
    series: dict[str, Sequence[float | None]]
    x_label: str = ""
    y_label: str = ""
    is_time: bool = True
    is_log: bool = False
    stops: Sequence[tuple[float, float]] = ()
    events: Sequence[Mapping[str, Any]] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "x": list(self.x),
            "series": {name: list(values) for name, values in self.series.items()},
            "x_label": self.x_label,
            "y_label": self.y_label,
            "is_time": self.is_time,
            "is_log": self.is_log,
            "stops": [list(stop) for stop in self.stops],
            "events": [{name: event[name] for name in ("at", "kind", "text")} for event in self.events],
        }


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with plots and at least one table; `tiles` are names and values for the boxes of a treemap."""

    name: str
    title: str
    about: str
    tables: Sequence[Table]
    plots: Sequence[Plot] = field(default=())
    tiles: Sequence[tuple[str, float]] = ()


NAME_VALUE: Final = (Column("figure", "text"), Column("value", "text"))


def share_of(part: float, whole: float) -> float | None:
    """Return part / whole, rounded to six digits; None if `whole` is 0."""
    return round(part / whole, 6) if whole else None
