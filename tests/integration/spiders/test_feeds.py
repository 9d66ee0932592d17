"""A crawl of feeds: front pages name them, and what they announce is fetched, and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bigcrawl_simweb.basics.resources import Kind
from bigcrawl_simweb.check.checker import CheckRules, check_exchanges
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.crawling.verdicts import assert_complete

if TYPE_CHECKING:
    from pathlib import Path

FETCHED = {Kind.FEED, Kind.ANNOUNCED, Kind.NEWS}


def test_what_feeds_announce_is_fetched_once(tmp_path: Path) -> None:
    """Of RSS and Atom, on all hosts; each entry is an item for each feed that has it."""
    items = tmp_path / "items.jsonl"
    settings = {
        "BIGCRAWL_HOST_DELAY": 0,
        "BIGCRAWL_PARTITIONS": 4,
        "FEEDS": json.dumps({str(items): {"format": "jsonlines"}}),
    }
    with SimulatedWeb(tmp_path / "web", hosts=4, pages=4, features="changes,feeds") as web:
        with Crawl(tmp_path / "crawl", web.seeds, settings, spider="feeds") as crawl:
            assert crawl.run() == 0, crawl.log.read_text()[-4000:]
        known = web.web.reachable(web.saved.port, web.seeds, read_feeds=True)
        kinds = {url: getattr(web.web.resource_at(url), "kind", None) for url in known}
        expected = {url: status for url, status in known.items() if url in web.seeds or kinds[url] in FETCHED}
        rules = CheckRules(expected=expected, port=web.saved.port, retries=2, allows=web.web.allows)
        assert_complete(check_exchanges(web.exchanges(), rules))
    found = [json.loads(line) for line in items.read_text().splitlines()]
    announced = {(entry["feed"], entry["url"]) for entry in found}
    assert len(announced) == len(found) == 4 * (6 + 2 * 2)
    assert {url for _, url in announced} == {url for url in expected if kinds[url] in FETCHED - {Kind.FEED}}
