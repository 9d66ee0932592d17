"""Scrapy's own tests that may fail with bigcrawl: each has its row on the page of differences, and there are few."""

from __future__ import annotations

from pathlib import Path

from scripts.scrapy_suite.run import SOMETIMES, exceptions

DIFFERENCES = Path(__file__).parents[2] / "docs" / "differences.md"
MOST = 20
"""Lower it with the table, which only shrinks."""


def test_each_exception_has_a_row_of_differences() -> None:
    """The reason begins with its section and row."""
    sections = {
        name: rest for name, _, rest in (part.partition("\n") for part in DIFFERENCES.read_text().split("\n## "))
    }
    for test, reason in exceptions().items():
        section, _, row = reason.removeprefix(SOMETIMES).partition(": ")[0].partition(", ")
        cells = [line.split("|")[1] for line in sections[section].splitlines() if line.startswith("|")]
        assert any(row in cell.replace("`", "") for cell in cells), f"{test}: no row {row} in {section}"


def test_exceptions_only_shrink() -> None:
    assert len(exceptions()) <= MOST
