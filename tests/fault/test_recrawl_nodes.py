"""Pages that are visited again survive `kill -9`, and go with their partition to another node."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from bigcrawl.simweb.basics.exchange import ROBOTS_TARGET
from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of, shares
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.fault, pytest.mark.timeout(600)]

VISITS = 4
SETTINGS = {"BIGCRAWL_HOST_DELAY": 0.05, "BIGCRAWL_PARTITIONS": 16, "BIGCRAWL_REVISIT_SECONDS_MIN": 1}
ARGUMENTS = {"policy": "periodic", "every": "10", "visits": str(VISITS)}


def test_every_page_has_its_visits_whatever_node_dies(tmp_path: Path) -> None:
    """Two nodes, one killed while the other goes on, then that one too: only what was in process is fetched again."""
    may_repeat: Counter[str] = Counter()
    with SimulatedWeb(tmp_path / "web", hosts=6, pages=12, features="validators") as web:
        crawl = Crawl(tmp_path / "crawl", web.seeds, dict(SETTINGS), arguments=ARGUMENTS, spider="recrawl")
        with crawl as first, second_process_of(first) as second:
            first.start()
            wait_until(lambda: len(web.exchanges()) > 0, "the crawl is under way")
            second.start()
            wait_until(lambda: shares(first) == [8, 8], "each node owns half", timeout_s=60)
            wait_until(lambda: any(each.status == 304 for each in web.exchanges()), "pages are visited again")
            may_repeat.update(first.taken())
            second.kill()
            may_repeat.update(first.taken())
            wait_until(lambda: shares(first) == [16], "the first owns all", timeout_s=60)
            may_repeat.update(first.taken())
            first.kill()
            may_repeat.update(first.taken())
            assert first.run(500) == 0, first.log.read_text()[-4000:]
        fetched = Counter(
            f"http://{each.host}:{web.saved.port}{each.target}"
            for each in web.exchanges()
            if each.target != ROBOTS_TARGET and each.status in (200, 304)
        )
        pages = {url for url, status in web.expected().items() if status == 200}
    assert set(fetched) == pages
    assert all(count >= VISITS for count in fetched.values())
    more = Counter({url: count - VISITS for url, count in fetched.items() if count > VISITS})
    assert not more - may_repeat
