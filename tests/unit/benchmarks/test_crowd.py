"""The benchmark in a crowd: what the client wrote of its fetches, and what a few seconds of it come to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.crowd.run import WINDOW_S, Window, window_of
from benchmarks.crowd.spy import Line, lines_of

if TYPE_CHECKING:
    from pathlib import Path


def test_lines_of_a_crawl_are_read_as_they_were_written(tmp_path: Path) -> None:
    """End, limit, time, and whether an answer came."""
    log = tmp_path / "spy.log"
    log.write_text("1000 64 250 1\n1500 32 3000 0\n")
    assert list(lines_of(log)) == [Line(1000, 64, 250, True), Line(1500, 32, 3000, False)]


def test_window_counts_what_ended_in_it() -> None:
    """Answers by the second and their median time; what ran into its timeout is lost, and has no time."""
    ends_ms = range(10_000, 10_000 + 1000 * (WINDOW_S + 1), 500)
    answers = [Line(end_ms, 40, 200, True) for end_ms in ends_ms]
    lines = [*answers, Line(11_000, 40, 3_000, False), Line(9_999, 64, 9_000, True)]
    assert window_of(lines, 10_000, 5_000, 20) == Window(5, 20, 40, 2, 200, 1)
    assert window_of([], 10_000, 5_000, 20) == Window(5, 20, 0, 0, 0, 0)
