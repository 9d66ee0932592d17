"""A node whose pages' disk hangs: nothing counts as fetched, and it neither runs away nor holds up the end."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.crawling.everything import stored
from tests.support.crawling.verdicts import assert_complete
from tests.support.faults import disk
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from pathlib import Path

IN_PROCESS = 12
STOP_S = 120  # ten on a machine that is not busy


def pages_asked_for(web: SimulatedWeb) -> int:
    return sum(not exchange.is_robots for exchange in web.exchanges())


@pytest.mark.long("a disk that hangs, full or broken, under the pipeline: tests/unit/pipelines/test_page_faults.py")
def test_disk_that_does_not_sync_stops_fetching_and_not_the_end(tmp_path: Path) -> None:
    """As many are fetched as may be in process; SIGTERM ends the node; the next one fetches these again, and all."""
    settings = {
        "BIGCRAWL_HOST_DELAY": 0.05,
        "BIGCRAWL_PARTITIONS": 8,
        "BIGCRAWL_IN_PROCESS_MAX": IN_PROCESS,
        "BIGCRAWL_SPEED": "20/s",  # so that the crawl is not over before the disk hangs
        "EXTENSIONS": json.dumps({"tests.support.faults.disk.FaultyDisk": 0}),
        "FAULTY_DISK": tmp_path / "disk",
    }
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=24, pages=8) as web:
        with Crawl(tmp_path / "crawl", web.seeds, settings) as crawl:
            crawl.start()
            wait_until(lambda: len(web.exchanges()) > 60, "the crawl is under way")
            disk.say(tmp_path / "disk", disk.PAGES_HANGING)
            before = pages_asked_for(web)
            wait_until(lambda: "nothing is acknowledged until it does" in crawl.log.read_text(), "it is said")
            wait_until(lambda: len(crawl.taken()) == IN_PROCESS, "as many as may be in process are")
            assert pages_asked_for(web) - before <= 2 * IN_PROCESS, "what was written by then was acknowledged still"
            in_process = Counter(crawl.taken())
            assert in_process.total() == IN_PROCESS
            crawl.terminate()
            assert crawl.wait(STOP_S) == 0
            assert crawl.log.read_text().count("nothing is acknowledged until it does") == 1
            disk.say(tmp_path / "disk", "")
            assert crawl.run() == 0
            assert set(web.expected()) <= set(stored(tmp_path / "crawl" / "warc"))
        assert_complete(web.report(delay_ms=50), in_process)
