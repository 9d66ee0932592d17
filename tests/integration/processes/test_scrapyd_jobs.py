"""Jobs of a real scrapyd that are cancelled twice."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import SimulatedWeb
from tests.support.crawling.scrapyd_node import ScrapydCrawl
from tests.support.crawling.verdicts import assert_complete
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long("a crawl of several scrapyd jobs; three scrapyds crawl in tests/system/test_scrapyd.py")

FOR_EVER_S = 3_600  # far longer than the test waits
SETTINGS = {"BIGCRAWL_HOST_DELAY": 1, "BIGCRAWL_PARTITIONS": 16, "BIGCRAWL_NODE": "node"}


def is_waiting(crawl: ScrapydCrawl) -> bool:
    """Whether nothing was fetched for a second, and hosts have not answered."""
    said = re.findall(r" ([\d.]+) pages/s; hosts: \d+ ready, \d+ waiting, (\d+) busy", crawl.log.read_text())
    return bool(said) and said[-1][0] == "0.0" and said[-1][1] != "0"


def test_second_cancel_ends_a_job_that_waits_for_its_fetches(tmp_path: Path) -> None:
    """The next job completes the crawl, and fetches nothing again but what was in process."""
    with no_strays_below(tmp_path), PrivateRedis() as server, SimulatedWeb(tmp_path / "web", hosts=16, pages=12) as web:
        settings = {**SETTINGS, "BIGCRAWL_REDIS_URL": server.url}
        with ScrapydCrawl(tmp_path / "crawl", web.seeds, settings) as crawl:
            crawl.start(BIGCRAWL_STOP_GRACE=FOR_EVER_S)
            wait_until(lambda: len(web.exchanges()) > 60, "the crawl is under way")
            web.pause()
            wait_until(lambda: is_waiting(crawl), "nothing is under way but fetches that do not end")
            crawl.cancel()
            wait_until(
                lambda: "Received SIGINT, shutting down gracefully" in crawl.log.read_text(), "the first is heard"
            )
            may_repeat = Counter(crawl.taken())  # it takes no more
            crawl.cancel()
            crawl.wait(300)
            assert "Received SIGINT twice, forcing unclean shutdown" in crawl.log.read_text()
            may_repeat |= Counter(crawl.taken())  # what it has not given back by then
            web.resume()
            assert crawl.run(300) == 0
            assert "Traceback" not in crawl.log.read_text()
        assert 0 < may_repeat.total() < len(web.expected()) / 2
    assert_complete(web.report(delay_ms=1_000), may_repeat)
