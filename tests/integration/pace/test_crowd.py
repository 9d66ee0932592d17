"""Real crawls through a link that is too narrow for CONCURRENT_REQUESTS: with the adaptive limit pages come whole."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import no_strays_below
from tests.support.servers.narrow_link import PAGE_BYTES, NarrowLink

if TYPE_CHECKING:
    from pathlib import Path

HOSTS, PAGES = 60, 8
PAGES_PER_S = 30
TIMEOUT_S = 1.5  # 60 at a time need two seconds each


class Passed(NamedTuple):
    """What came through the link."""

    whole: int
    broken: int
    at_once: float
    log: str


def crawl(directory: Path, **settings: Any) -> Passed:
    """Fetch every page once; what runs into its timeout is lost."""
    quick = {
        "BIGCRAWL_HOST_DELAY": 0,
        "BIGCRAWL_BACKOFF": 0,
        "BIGCRAWL_PARTITIONS": 8,
        "BIGCRAWL_STEP_SECONDS": 0.2,
        "BIGCRAWL_TRUNCATE": 0,
        "BIGCRAWL_SLOW_SECONDS": 0,
        "DOWNLOAD_TIMEOUT": TIMEOUT_S,
        "RETRY_ENABLED": 0,
    }
    with no_strays_below(directory), NarrowLink(HOSTS, PAGES_PER_S * PAGE_BYTES) as link:
        with Crawl(directory, link.urls(PAGES), {**quick, **settings}) as running:
            assert running.run(150) == 0
            log = running.log.read_text()
        return Passed(link.whole, link.broken, median(link.at_once), log)


@pytest.mark.fault  # a busy machine is a narrow link too: beside five other crawls it loses pages by itself
def test_crowded_link_loses_pages_to_timeouts_unless_fewer_are_fetched_at_a_time(tmp_path: Path) -> None:
    """64 at a time lose most pages; the limit that adapts loses hardly any, and says that it did."""
    fixed = crawl(tmp_path / "fixed", BIGCRAWL_FETCHES_MIN=0)
    adapted = crawl(tmp_path / "adapted")
    assert fixed.broken > HOSTS * PAGES / 3
    assert adapted.broken < fixed.broken / 10
    assert adapted.whole > 0.95 * HOSTS * PAGES
    assert adapted.at_once < fixed.at_once / 2
    assert "'bigcrawl/fetches/limit': 64" in fixed.log
    assert "'bigcrawl/fetches/limit': 64" not in adapted.log
