"""The last warnings and errors, for people who look at the crawl."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from bigcrawl.logs.repeats import RepeatFilter
from bigcrawl.logs.tail import ROWS_MAX, TEXT_MAX, LogTail

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def tail() -> Iterator[LogTail]:
    """The tail of the logger that `log` writes to."""
    made = LogTail()
    log.addHandler(made)
    yield made
    log.removeHandler(made)


log = logging.getLogger("a.tail.of.tests")
log.propagate = False


def test_repeated_lines_are_one_row_with_the_last_text(tail: LogTail) -> None:
    """By their template; the row whose line came last is first. Lines below a warning are none."""
    for host in ("a.example", "b.example"):
        log.warning("%s is away", host)
    log.error("the disk is full")
    log.info("fine")
    assert [(row.level, row.text, row.lines) for row in tail.rows()] == [
        ("ERROR", "the disk is full", 1),
        ("WARNING", "b.example is away", 2),
    ]
    assert tail.rows()[1].first_s <= tail.rows()[1].last_s
    assert (tail.warnings, tail.errors) == (2, 1)
    log.critical("%s is away", "c.example")
    assert tail.errors == 2
    assert len(tail.rows()) == 3


def test_flood_stays_within_bounds(tail: LogTail) -> None:
    """Of lines, of their length, and of what cannot be formatted; all are counted."""
    for number in range(3 * ROWS_MAX):
        log.warning(f"{number} {'x' * 10_000}")  # noqa: G004 - as others write them
    tail.handle(logging.makeLogRecord({"msg": "%d", "args": ("no number",), "levelno": 30, "levelname": "WARNING"}))
    rows = tail.rows()
    assert len(rows) == ROWS_MAX
    assert max(len(row.text) for row in rows) == TEXT_MAX
    assert rows[0].text == "%d"
    assert tail.warnings == 3 * ROWS_MAX + 1


def test_text_is_one_plain_line_with_the_error_and_no_password(tail: LogTail) -> None:
    """As it is shown elsewhere, too."""
    error = ValueError("\x1b[2J of http://me:secret@a.example/")
    log.error("spider error\nprocessing %s", "<GET http://u:p@b.example/>", exc_info=error)
    [row] = tail.rows()
    expected = "spider error processing <GET http://b.example/>: ValueError: \\x1b[2J of http://a.example/"
    assert row.text == expected


def test_line_that_counts_suppressed_ones_is_none_of_its_own(tail: LogTail) -> None:
    """They were counted when they came."""
    repeats = RepeatFilter()
    handler = logging.NullHandler()
    handler.addFilter(repeats)
    own = logging.getLogger("bigcrawl.tail.of.tests")
    own.addHandler(handler)
    own.addHandler(tail)
    try:
        for _ in range(3):
            own.warning("again")
        repeats.flush()
    finally:
        own.removeHandler(handler)
        own.removeHandler(tail)
    assert [(row.text, row.lines) for row in tail.rows()] == [("again", 3)]
    assert tail.warnings == 3
