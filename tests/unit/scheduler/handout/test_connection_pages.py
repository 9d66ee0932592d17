"""Several pages of a host over a kept connection, and then its pause (BIGCRAWL_CONNECTION_PAGES; 002 §2.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.rules.delay_rules import delays_text
from tests.unit.scheduler.handout.desk import Desk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def rests(desk: Desk, fetches: Sequence[dict[str, Any]]) -> list[int]:
    """Fetch these, one after the other; return how long the host rests after each."""
    for seq, fetch in enumerate(fetches, 1):
        held = desk.started(seq)
        held.outcome, held.is_kept = "status:200", True
        for name, value in fetch.items():
            setattr(held, name, value)
        desk.handout.fetches.record_answered(held)
        desk.handout.fetches.end(held)
    return [end.delay_ms for end in desk.ended()]


@pytest.mark.parametrize(
    ("pages", "fetches", "expected"),
    [
        (1, [{}] * 3, [1_000] * 3),
        (3, [{}] * 7, [0, 0, 1_000, 0, 0, 1_000, 0]),
        (5, [{}] * 5, [0, 0, 0, 0, 1_000]),
        (3, [{"is_kept": False}] * 3, [1_000] * 3),  # nothing is kept
        (3, [{}, {"is_kept": False}, {}, {}, {}], [0, 1_000, 0, 0, 1_000]),  # the server has closed it
        (3, [{"outcome": f"status:{status}"} for status in (301, 404, 200)], [0, 0, 1_000]),
        (9, [{"crawl_delay_ms": 3_000}] * 3, [3_000] * 3),  # it asks for pauses
        (9, [{"crawl_delay_ms": 500}] * 3, [1_000] * 3),
        (9, [{"crawl_delay_ms": 0}] * 3, [0] * 3),
        (3, [{"download_ms": 11_000}] * 2, [10_000] * 2),  # it is slow
    ],
)
def test_host_rests_after_so_many_pages_of_a_kept_connection(
    tmp_path: Path, pages: int, fetches: list[dict[str, Any]], expected: list[int]
) -> None:
    """Sooner if the connection is not kept; after each page if the host asks for pauses or is slow."""
    assert rests(Desk(tmp_path, connection_pages=pages, crawl_delay_max=5), fetches) == expected


@pytest.mark.parametrize("outcome", ["error:timeout", "error:connection", "status:503", "status:429"])
def test_host_rests_after_a_failure(tmp_path: Path, outcome: str) -> None:
    """The next page begins a new count."""
    desk = Desk(tmp_path, connection_pages=3)
    found = rests(desk, [{}, {"outcome": outcome}, {}, {}, {}])
    assert found[0] == 0
    assert found[1] >= 1_000
    assert found[2:] == [0, 0, 1_000]


def test_rest_that_a_server_asks_for_counts(tmp_path: Path) -> None:
    """Retry-After is longer than any page of the connection."""
    desk = Desk(tmp_path, connection_pages=3)
    assert rests(desk, [{"retry_after_ms": 4_000}, {}]) == [4_000, 0]


def test_setting_is_not_for_several_connections(tmp_path: Path) -> None:
    """With those, fetches are a delay apart."""
    with pytest.raises(ConfigError, match="BIGCRAWL_CONNECTION_PAGES and BIGCRAWL_HOST_CONNECTIONS"):
        Desk(tmp_path, connection_pages=2, host_connections=2)


def test_log_says_after_how_many_pages_hosts_rest(tmp_path: Path) -> None:
    """With the setting that makes it so."""
    said = delays_text(Desk(tmp_path, connection_pages=4).config, 0)
    assert "a host rests 1 s after up to 4 pages (BIGCRAWL_CONNECTION_PAGES) (BIGCRAWL_HOST_DELAY)" in said
