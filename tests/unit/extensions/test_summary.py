"""The table at the end: the whole crawl's figures, this run's time."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from bigcrawl.extensions.summary import summary_table
from bigcrawl.scheduler.crawl.survey import Survey
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path

COUNTS = Counter(
    {
        "status:200": 90,
        "status:404": 10,
        "retried:status:503": 4,
        "error:timeout": 2,
        "dropped:forbidden": 7,
        "robots": 20,
        "bytes": 2_000_000,
        "seen": 300,
        "duplicates": 5_000,
    }
)


def table_of(tmp_path: Path, reason: str = "finished", pages_before: int = 0, **settings: Any) -> str:
    frontier: Any = SimpleNamespace(config=make_config(tmp_path, "crawl", **settings))
    seen = Survey(4, urls_disk=3, urls_taken=1, counts=COUNTS)
    return summary_table(frontier, seen, reason, 50.0, pages_before)


def row(table: str, label: str) -> str:
    [line] = [line for line in table.splitlines() if line.strip().startswith(label)]
    return line.strip()[len(label) :].strip()


def test_requests_are_all_that_went_out(tmp_path: Path) -> None:
    """Pages, robots.txt, errors and tries that were repeated: each is a request."""
    table = table_of(tmp_path)
    assert row(table, "HTTP requests") == "126"
    assert row(table, "robots.txt requests") == "20"
    assert row(table, "pages (any status)") == "100"
    assert row(table, "tries that were repeated") == "4"
    assert row(table, "timeout") == "2"
    assert row(table, "forbidden") == "7"


def test_statuses_have_their_share(tmp_path: Path) -> None:
    """By code, with its name, count and share of all pages."""
    assert row(table_of(tmp_path), "404 Not Found").split() == ["10", "10.00%"]


def test_sizes_and_rates_are_per_page_and_per_second(tmp_path: Path) -> None:
    """Mean size over all pages; the rate is this run's, resumes not counted."""
    table = table_of(tmp_path, pages_before=60)
    assert row(table, "mean size of a page") == "20,000 bytes"
    assert row(table, "total data") == "2.0 MB"
    assert row(table, "pages of this run") == "40"
    assert row(table, "pages/s of this run") == "0.8"


def test_end_is_told_from_a_stop(tmp_path: Path) -> None:
    """A stopped crawl says how much waits and that it can go on; only a finished one says finished."""
    assert "crawl crawl: finished" in table_of(tmp_path)
    stopped = table_of(tmp_path, reason="shutdown")
    assert "stopped (shutdown), 4 URLs wait" in stopped
    assert "finished" not in stopped


def test_place_of_the_pages_is_named(tmp_path: Path) -> None:
    """Where the WARC files are, or that there are none and why."""
    assert f"WARC files: {tmp_path / 'warc'}" in table_of(tmp_path, warc_dir=str(tmp_path / "warc"))
    assert "BIGCRAWL_WARC_DIR is empty" in table_of(tmp_path)


def test_empty_crawl_has_a_table_too(tmp_path: Path) -> None:
    """Nothing fetched: no division by nothing."""
    frontier: Any = SimpleNamespace(config=make_config(tmp_path, "crawl"))
    table = summary_table(frontier, Survey(4), "finished", 0.0, 0)
    assert row(table, "pages (any status)") == "0"
