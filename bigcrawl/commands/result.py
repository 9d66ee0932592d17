from __future__ import annotations

import os
import sys
import textwrap
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


BOLD: Final = "1"
GREEN: Final = "32"
YELLOW: Final = "33"


def wants_colour() -> bool:
    """Whether standard output is a terminal with colours and NO_COLOR is unset (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, colour: str) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m"


class Result(NamedTuple):
    """The result of an action: `data` for JSON, the same as `text`, which `paint` colours, and the exit `status`."""

    data: dict[str, Any]
    text: str
    status: int = 0
    paint: Callable[[str], str] = str


def table_lines(widths: Mapping[str, int], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a table, the head first. `widths` has each column's width, negative to align left."""

    def line(cells: Iterable[str]) -> str:
        columns = zip(cells, widths.values(), strict=False)  # a row may end early
        return "".join(cell.ljust(-width) if width < 0 else cell.rjust(width) for cell, width in columns).rstrip()

    return [line(widths), *map(line, rows)]


def wrapped_lines(line: str, indent: int, width: int = 80) -> list[str]:
    """Wrap a line between words to the width; further lines are indented."""
    if len(line) <= width:
        return [line]
    found = textwrap.wrap(line[indent:], width - indent, break_long_words=False, break_on_hyphens=False)
    return [(" " * indent if number else line[:indent]) + text for number, text in enumerate(found)]


def named_lines(title: str, rows: Mapping[str, str], width: int = 11) -> str:
    return "\n".join([title, *(f"  {name:<{width}}{text}" for name, text in rows.items())])
