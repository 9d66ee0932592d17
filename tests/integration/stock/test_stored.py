"""Other people's spiders over the pages that they have fetched: the same items, and no network at all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.integration.scrapy_compat.site import Site
from tests.integration.stock.table import CASES
from tests.integration.stock.test_stock import ADDED, COMMON, Side, run

pytestmark = pytest.mark.long(
    "spiders of test_stock over the pages that they stored; test_stored_pages has one of them"
)
NET = "127.84.3"
RUNNER = "AsyncCrawlerRunner"
NAMES = (
    "plain", "start", "rules", "map", "forms", "cookies", "cookies-off", "pipelines", "close-in-callback",
    "depth-limit", "closespider-pagecount", "retries", "redirects", "errback_example",
)  # fmt: skip
# Answers are stored, and nothing of a fetch that had none; how often one was tried is not.
LOST: dict[str, frozenset[str]] = {"retries": frozenset({"retries"}), "errback_example": frozenset({"retries"})}


@dataclass(frozen=True)
class Runs:
    """The crawls, and the runs over what they stored."""

    live: Side
    stored: Side


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Runs:
    """All cases live in one process, then without the site and without a network in another."""
    directory = tmp_path_factory.mktemp("stored")
    cases = {str(case): case for case in CASES if str(case) in NAMES}
    assert len(cases) == len(NAMES)
    common = {**COMMON, **ADDED, "RETRY_TIMES": 1}
    live = [
        [
            case.spider,
            {
                **common,
                **case.settings,
                "BIGCRAWL_REDIS_URL": redis_url,
                "BIGCRAWL_CRAWL": f"stored-{name}",
                "BIGCRAWL_WARC_DIR": str(directory / name),
                "BIGCRAWL_WARC_COPIES": "by-reference",
            },
        ]
        for name, case in cases.items()
    ]
    stored = [
        [case.spider, {**common, **case.settings, "BIGCRAWL_SOURCE": str(directory / name / "*.warc.gz")}]
        for name, case in cases.items()
    ]
    with Site(NET) as site:
        fetched = run(site, directory / "live", live, RUNNER)
    return Runs(fetched, run(site, directory / "again", stored, RUNNER, is_offline=True))


def items(name: str, told: dict[str, Any]) -> list[str]:
    """The items of a run, in an order of their own, without what is not stored."""
    lost = LOST.get(name, frozenset())
    return sorted(
        json.dumps({key: value for key, value in item.items() if key not in lost}, sort_keys=True)
        for item in told["items"]
    )


@pytest.mark.parametrize("name", NAMES)
def test_spider_gives_the_same_items_over_stored_pages(runs: Runs, name: str) -> None:
    """Callbacks, their arguments, meta, errbacks of error statuses; the order of one node is that of its crawl."""
    number = [str(case) for case in CASES if str(case) in NAMES].index(name)
    live, stored = runs.live.told[number], runs.stored.told[number]
    wanted, found = items(name, live), items(name, stored)
    if name == "errback_example":  # who got no answer is not in the files
        answered = ('"got": "HttpError"', '"got": "response"', "/redirect/forever")
        wanted = [item for item in wanted if any(got in item for got in answered)]
    assert wanted
    assert found == wanted
    # Of a crawl that was closed after so many pages no more are stored.
    assert stored["reason"] == ("finished" if name == "closespider-pagecount" else live["reason"])


def test_no_spider_has_tried_to_use_a_network(runs: Runs) -> None:
    """Neither for a page nor for robots.txt, DNS, Redis or the list of public suffixes."""
    assert [told["attempts"] for told in runs.stored.told] == [[]] * len(NAMES)
    assert runs.stored.status == 0
    assert runs.stored.log.count("Traceback") == 1, "that of a pipeline that is to fail"
