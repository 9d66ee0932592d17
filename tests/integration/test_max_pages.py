"""BIGCRAWL_MAX_PAGES in real crawls: silent hosts hold up no end, and a crawl that has them already just ends."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tests.integration.hosts.test_backoff import QUICK, Answer, serving, well
from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from pathlib import Path

PAGES = 6


def test_pages_are_reached_beside_silent_hosts_and_once_only(tmp_path: Path) -> None:
    """Their fetches are given up within the stop grace, not after a timeout; the next run ends at once."""
    over = threading.Event()

    def silent(path: str) -> Answer:
        over.wait()
        return 200, {}

    settings: dict[str, Any] = {
        **QUICK,
        "BIGCRAWL_MAX_PAGES": PAGES,
        "BIGCRAWL_ROBOTS": "ignore-i-own-these-hosts",
        "BIGCRAWL_FETCH_DEADLINE": 3_600,
        "DOWNLOAD_TIMEOUT": 3_600,
    }
    with no_strays_below(tmp_path), serving("127.0.63.1", silent) as mute, serving("127.0.63.2", well) as fine:
        paths = [f"/{number}" for number in range(20)]
        crawl = Crawl(tmp_path / "crawl", mute.urls(*paths) + fine.urls(*paths), settings)
        try:
            with crawl:
                assert crawl.run(300) == 0
                log = crawl.log.read_text()
                assert "Traceback" not in log
                assert f"BIGCRAWL_MAX_PAGES reached: {PAGES} pages" in log
                assert len(fine.pages) == PAGES
                assert crawl.run(300) == 0
                log = crawl.log.read_text()
                assert "Traceback" not in log
                assert log.count("BIGCRAWL_MAX_PAGES reached") == 1
                assert "Closing spider (bigcrawl_max_pages)" in log
                assert len(fine.pages) == PAGES
        finally:
            over.set()
