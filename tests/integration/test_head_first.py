"""A crawl that asks by HEAD first and orders by ranks: the server's log has what was asked, and how far apart."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from bigcrawl_simweb.serve.access_log import read_log
from tests.support.crawling.crawls import Crawl, SimulatedWeb

if TYPE_CHECKING:
    from pathlib import Path

DELAY_MS = 100
SETTINGS = {
    "BIGCRAWL_PARTITIONS": 4,
    "BIGCRAWL_HOST_DELAY": DELAY_MS / 1000,
    "BIGCRAWL_PRIORITIZER": "opic",
    "BIGCRAWL_HEAD_FIRST": "/",
    "BIGCRAWL_FILTER_MEDIA_TYPES": "text/html",
}


def test_every_page_is_asked_by_head_first_and_unwanted_ones_are_not_fetched(tmp_path: Path) -> None:
    """Each page once by HEAD and, if it is wanted, once by GET, later; each host keeps its delay between them."""
    with (
        SimulatedWeb(tmp_path / "web", hosts=2, pages=4) as web,
        Crawl(tmp_path / "crawl", web.seeds, SETTINGS) as crawl,
    ):
        assert crawl.run(300) == 0
        asked: dict[tuple[str, str], list[str]] = defaultdict(list)
        ends: dict[str, int] = {}
        plain = ""
        for line in sorted(read_log(web.log)):
            assert line.start_ms - ends.get(line.host, 0) >= DELAY_MS - 1, "each request has a turn of its own"
            ends[line.host] = line.end_ms
            if line.target != "/robots.txt":
                asked[line.host, line.target].append(line.method)
                plain = f"http://{line.host}:{web.saved.port}{line.target}" if line.target.endswith(".txt") else plain
        assert all(methods[0] == "HEAD" and methods.count("HEAD") == 1 for methods in asked.values()), asked
        texts = [methods for (_, target), methods in asked.items() if target.endswith(".txt")]
        pages = [methods for (_, target), methods in asked.items() if target.endswith(".html")]
        assert texts
        assert all(methods == ["HEAD"] for methods in texts)
        assert pages
        assert all("GET" in methods for methods in pages)
        assert crawl.asked("explain", plain)["outcome"]["name"] == "dropped:media-type"
        assert crawl.status()["outcomes"]["dropped:media-type"] == len(texts)
