"""A problem that repeats is told once, and counted."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from bigcrawl.logs.repeats import EACH_MAX, SPAN_S, TEMPLATES_MAX, RepeatFilter

if TYPE_CHECKING:
    from collections.abc import Iterator


class Told(logging.Handler):
    """Keeps what is written, with a filter whose clock the test sets."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1_000.0
        self.repeats = RepeatFilter(lambda: self.now_s)
        self.lines: list[str] = []
        self.addFilter(self.repeats)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[Told]:
    caplog.set_level(logging.INFO)
    handler = Told()
    logging.root.addHandler(handler)
    yield handler
    logging.root.removeHandler(handler)


ours = logging.getLogger("bigcrawl.a.part")
others = logging.getLogger("project")


def test_repeated_problem_is_told_once_and_then_as_a_number(told: Told) -> None:
    """The count comes with whatever is logged after the span."""
    for _ in range(100):
        ours.warning("waiting: %(what)s", {"what": "Redis is away"})
    assert told.lines == ["WARNING waiting: Redis is away"]
    told.now_s += SPAN_S
    others.error("something else")
    assert told.lines[1:] == [
        "WARNING 99 more lines like this one within 60 s: waiting: Redis is away",
        "ERROR something else",
    ]
    ours.warning("waiting: %(what)s", {"what": "Redis is away"})
    assert told.lines[3:] == ["WARNING waiting: Redis is away"]


def test_different_lines_of_a_template_are_told_as_long_as_they_are_few(told: Told) -> None:
    """A list of wrong settings is told in full; a line for each of a thousand hosts is not."""
    for at in range(1_000):
        ours.error("%(host)s fails", {"host": f"{chr(97 + at % 26)}.example"})
    assert len(told.lines) == EACH_MAX
    told.repeats.flush()
    assert told.lines[EACH_MAX:] == ["ERROR 995 more lines like this one within 1 s: l.example fails"]
    told.repeats.flush()
    assert len(told.lines) == EACH_MAX + 1, "nothing is told twice"


def test_lines_of_others_and_good_news_pass(told: Told) -> None:
    """Only bigcrawl's WARNINGs and ERRORs are counted; a level of its own is a problem of its own."""
    for _ in range(10):
        others.error("failed")
        ours.info("fine")
    assert len(told.lines) == 20
    ours.warning("failed")
    ours.error("failed")
    assert told.lines[20:] == ["WARNING failed", "ERROR failed"]


def test_memory_is_bounded_and_no_count_is_lost(told: Told) -> None:
    """With more templates than are remembered, the oldest is summed up early."""
    for _ in range(2):
        ours.warning("first")
    for at in range(3 * TEMPLATES_MAX):
        ours.warning(f"template {at}")
    assert len(told.repeats._templates) <= TEMPLATES_MAX
    assert "WARNING 1 more lines like this one within 1 s: first" in told.lines
