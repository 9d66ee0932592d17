"""Lines come back sorted, whatever memory holds."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, BinaryIO

import pytest

from bigcrawl.page_index import sorted_lines
from bigcrawl.page_index.sorted_lines import SortedLines

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@pytest.mark.parametrize("bytes_max", [1, 300, 1 << 20])
def test_lines_come_back_in_the_order_of_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_max: int
) -> None:
    """All of them, equal ones too, with many runs, with few and with none; and no file has a name."""
    monkeypatch.setattr(sorted_lines, "_RUNS_MAX", 3)
    given = [b"%d %s\n" % (random.Random(n).randrange(50), b"x" * (n % 7)) for n in range(400)]
    lines = SortedLines(tmp_path, bytes_max)
    for line in given:
        lines.add(line)
    assert len(lines._lines) * 34 <= bytes_max + 40
    assert list(lines) == sorted(given)
    assert os.listdir(tmp_path) == []  # noqa: PTH208
    lines.close()


def test_a_line_is_written_as_often_as_there_are_levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for each merge: 729 runs of one line, of which three are merged at a time, have six levels above."""
    monkeypatch.setattr(sorted_lines, "_RUNS_MAX", 3)
    written: list[int] = []
    write = SortedLines._write_run

    def count(self: SortedLines, lines: Iterable[bytes]) -> BinaryIO:
        kept = list(lines)
        written.append(len(kept))
        return write(self, kept)

    monkeypatch.setattr(SortedLines, "_write_run", count)
    lines = SortedLines(tmp_path, 1)
    for number in range(3**6):
        lines.add(b"%d\n" % number)
    assert sum(written) == 3**6 * (1 + 6)
    assert repr(lines) == "<SortedLines lines=0 runs=1>"
    assert len(list(lines)) == 3**6
    lines.close()
    assert repr(lines) == "<SortedLines lines=0 runs=0>"
