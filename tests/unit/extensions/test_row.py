"""The row at the bottom of a terminal, seen as a terminal shows it."""

from __future__ import annotations

import io
import logging
from typing import TYPE_CHECKING

import pyte
import pytest

from bigcrawl.extensions.row import ProgressRow

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTS = ["12,345 pages", "123.4/s", "98,765 URLs wait", "1,234 hosts busy", "1.23GB", "99,999 URLs seen"]


class Terminal(io.StringIO):
    """Standard error of a given width."""

    def __init__(self, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self._screen = pyte.Screen(columns, 10)
        self._stream = pyte.Stream(self._screen)
        monkeypatch.setattr("sys.stderr", self)
        monkeypatch.setattr("tqdm.std._screen_shape_wrapper", lambda: lambda fp: (columns, 10))

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._stream.feed(text.replace("\n", "\r\n"))
        return len(text)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self._screen.display if line.strip()]


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    """The root logger, as it was afterwards."""
    root = logging.getLogger()
    before = root.handlers[:]
    yield root
    root.handlers[:] = before


@pytest.mark.parametrize("columns", [80, 40, 20, 8])
def test_row_keeps_to_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """What fits is shown, whole parts of it; the next row takes the place of the one before; nothing stays."""
    terminal = Terminal(columns, monkeypatch)
    row = ProgressRow()
    for _ in range(3):
        row.show_parts(PARTS)
        [shown] = terminal.lines
        assert ", ".join(PARTS).startswith(shown)
        assert len(shown) <= columns
    row.show_parts(["1 page"])
    assert terminal.lines == ["1 page"]
    row.close()
    assert terminal.lines == []


def test_log_lines_stand_above_the_row(monkeypatch: pytest.MonkeyPatch, log: logging.Logger) -> None:
    """Each takes a line of its own, the row stays below them, and the log is as it was when the row has gone."""
    terminal = Terminal(80, monkeypatch)
    handler = logging.StreamHandler(terminal)
    log.addHandler(handler)
    row = ProgressRow()
    assert row.has_log
    row.show_parts(PARTS)
    log.warning("first")
    assert terminal.lines == ["first", ", ".join(PARTS[:5])]
    log.warning("second")
    row.close()
    log.warning("third")
    assert terminal.lines == ["first", "second", "third"]
    assert handler.stream is terminal


def test_log_in_a_file_is_told_too(monkeypatch: pytest.MonkeyPatch, log: logging.Logger) -> None:
    """A handler that does not write to the terminal does not count as being above the row."""
    Terminal(80, monkeypatch)
    log.handlers[:] = [logging.StreamHandler(io.StringIO())]
    row = ProgressRow()
    assert not row.has_log
    row.close()
