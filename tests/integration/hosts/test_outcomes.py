"""What became of every URL of a crawl can be asked for afterwards; one can be forgotten, and one retried."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.crawling.explained import explained
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def pages_asked_for(web: SimulatedWeb) -> list[tuple[str, int]]:
    """URL and status of each exchange, in order, robots.txt files apart."""
    exchanges = [exchange for exchange in web.exchanges() if exchange.target != "/robots.txt"]
    return [(f"http://{one.host}:{web.saved.port}{one.target}", one.status) for one in exchanges]


def statuses(web: SimulatedWeb) -> dict[str, str]:
    """The last status of every URL that the web was asked for."""
    return {url: f"status:{status}" for url, status in pages_asked_for(web)}


def times_fetched(web: SimulatedWeb) -> Counter[str]:
    return Counter(url for url, _ in pages_asked_for(web))


def forbidden_links(web: SimulatedWeb, pages: Iterable[str]) -> set[str]:
    links = {link for page in pages for link in web.web.leads_to(page, web.saved.port)}
    parts = {link: urlsplit(link) for link in links}
    return {
        link
        for link, part in parts.items()
        if not web.web.allows(part.hostname or "", part.path + (f"?{part.query}" if part.query else ""))
    }


@pytest.mark.long("each command by itself: tests/unit/commands")
def test_every_url_can_be_asked_for_forgotten_and_retried(tmp_path: Path) -> None:
    """Over three runs of a crawl: what the server says of each URL is what the crawl knows of it."""
    settings = {"BIGCRAWL_HOST_DELAY": 0.05, "BIGCRAWL_PARTITIONS": 16}
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=8, pages=12) as web:
        crawl = Crawl(tmp_path / "crawl", web.seeds, settings)
        began_s = int(time.time())
        with crawl:
            assert crawl.run() == 0
        fetched = statuses(web)
        assert len(fetched) > 50

        # asked for
        found = explained(crawl, fetched)
        assert {url: said["outcome"]["name"] for url, said in found.items()} == fetched
        assert {said["where"] for said in found.values()} == {"ended"}
        assert all(said["seen"] for said in found.values())
        times = [said["outcome"]["time"] for said in found.values()]
        assert min(times) >= time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(began_s))
        shut = explained(crawl, forbidden_links(web, fetched))
        named = [said["outcome"] for said in shut.values() if said["seen"]]
        assert named, "some links are forbidden"
        assert {outcome["name"] for outcome in named} == {"dropped:forbidden"}
        assert all(outcome["rule"].startswith("Disallow: /") for outcome in named)
        assert crawl.asked("explain", web.seeds[0])["outcome"]["name"] == fetched[web.seeds[0]]

        # forgotten: of two seeds of a new start the one that is new again is fetched
        pages = [url for url, outcome in fetched.items() if outcome == "status:200"]
        forgotten, remembered, retried = pages[3], pages[5], pages[7]
        before = times_fetched(web)
        assert crawl.frontier("forget", forgotten).stdout == f"to be forgotten: {forgotten}\n"
        assert explained(crawl, [forgotten])[forgotten]["where"] == "nowhere"
        more = Crawl(
            tmp_path / "more",
            [forgotten, remembered],
            {
                **settings,
                "BIGCRAWL_STATE_DIR": crawl.directory / "state",
                "BIGCRAWL_WARC_DIR": crawl.directory / "warc",
            },
        )
        with more:
            assert more.run() == 0
        assert times_fetched(web) - before == Counter([forgotten])
        said = explained(crawl, [forgotten])[forgotten]
        assert (said["where"], said["seen"], said["outcome"]["name"]) == ("ended", True, "status:200")

        # retried
        assert crawl.frontier("retry", retried).stdout == f"queued again: {retried}\n"
        assert explained(crawl, [retried])[retried]["where"] == "inbox"
        again = crawl.frontier("retry", retried, check=False)
        assert again.returncode == 1
        assert again.stdout.startswith(f"not queued again: {retried} is in its partition's inbox")
        with crawl:
            assert crawl.run() == 0
        assert times_fetched(web) - before == Counter([forgotten, retried])
        said = explained(crawl, [retried])[retried]
        assert (said["where"], said["outcome"]["name"]) == ("ended", "status:200")
        crawl.frontier("verify")
        assert crawl.frontier("explain", "mailto:nobody@a.example", check=False).returncode == 1
