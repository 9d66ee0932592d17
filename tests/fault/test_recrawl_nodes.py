"""Pages that are visited again survive `kill -9`, and go with their partition to another node."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import pytest

from bigcrawl_simweb.basics.exchange import ROBOTS_TARGET
from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of, shares
from tests.support.crawling.verdicts import pause
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.fault, pytest.mark.timeout(600)]

VISITS = 4
SETTINGS = {"BIGCRAWL_HOST_DELAY": 0.05, "BIGCRAWL_PARTITIONS": 16, "BIGCRAWL_REVISIT_SECONDS_MIN": 1}
ARGUMENTS = {"policy": "periodic", "every": "10", "visits": str(VISITS)}
AWAY_S = 5.0  # longer than a node would keep what it has told Redis, if it went by the clock


def has_fetched(web: SimulatedWeb, fetches: int) -> bool:
    return len(web.exchanges()) >= fetches


def visits_of(web: SimulatedWeb) -> Counter[str]:
    """How often each page was asked for and given."""
    return Counter(
        f"http://{each.host}:{web.saved.port}{each.target}"
        for each in web.exchanges()
        if each.target != ROBOTS_TARGET and each.status in (200, 304)
    )


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
        fetched = visits_of(web)
        pages = {url for url, status in web.expected().items() if status == 200}
    assert set(fetched) == pages
    assert all(count >= VISITS for count in fetched.values())
    more = Counter({url: count - VISITS for url, count in fetched.items() if count > VISITS})
    assert not more - may_repeat


def test_every_page_has_its_visits_when_redis_forgets_its_last_second_and_stays_away(tmp_path: Path) -> None:
    """Four reboots of the server under a node that lives: what ended just before is not known from the server."""
    may_repeat: Counter[str] = Counter()
    with PrivateRedis() as server, SimulatedWeb(tmp_path / "web", hosts=20, pages=40, features="validators") as web:
        settings = {"BIGCRAWL_HOST_DELAY": 0.2, "BIGCRAWL_REVISIT_SECONDS_MIN": 1, "BIGCRAWL_REDIS_URL": server.url}
        arguments = {"policy": "periodic", "every": "5", "visits": "2"}
        crawl = Crawl(tmp_path / "crawl", web.seeds, settings, arguments=arguments, spider="recrawl")
        with crawl:
            crawl.start()
            for _ in range(4):
                wait_until(partial(has_fetched, web, len(web.exchanges()) + 150), "the crawl is under way", 120)
                may_repeat.update(crawl.taken())
                server.kill()
                server.cut_aof_of_killed(1)
                pause(AWAY_S)
                server.start()
            assert crawl.wait(500) == 0, crawl.log.read_text()[-4000:]
        fetched = visits_of(web)
        pages = {url for url, status in web.expected().items() if status == 200}
    assert set(fetched) == pages
    once = [url for url, count in fetched.items() if count < 2]
    assert not once, f"{len(once)} of {len(fetched)} pages were visited once"
    assert not Counter({url: count - 2 for url, count in fetched.items() if count > 2}) - may_repeat
