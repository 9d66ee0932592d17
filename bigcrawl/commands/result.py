"""The result of a `scrapy frontier` action, and helpers that lay out its text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Result(NamedTuple):
    """The result of an action: `data` for JSON, `text` with the same for people, and the exit `status`."""

    data: dict[str, Any]
    text: str
    status: int = 0


def table_lines(widths: Mapping[str, int], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a table, the head first. `widths` has each column's width, negative to align left."""

    def line(cells: Iterable[str]) -> str:
        columns = zip(cells, widths.values(), strict=False)  # a row may end early
        return "".join(cell.ljust(-width) if width < 0 else cell.rjust(width) for cell, width in columns).rstrip()

    return [line(widths), *map(line, rows)]


def named_lines(title: str, rows: Mapping[str, str], width: int = 11) -> str:
    return "\n".join([title, *(f"  {name:<{width}}{text}" for name, text in rows.items())])
