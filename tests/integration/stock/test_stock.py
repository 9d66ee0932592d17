"""Each spider once on stock Scrapy and once on bigcrawl, as processes: it gives the same, or the table says why not."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.downloads.differences import differences
from tests.integration.scrapy_compat.site import Site
from tests.integration.stock.case import ANYTHING, Case
from tests.integration.stock.table import CASES
from tests.support.running import warm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPOSITORY = Path(__file__).parents[3]
RUN_S_MAX = 600
NETS = ("127.84.1", "127.84.2")
RUNNERS = ("CrawlerProcess", "AsyncCrawlerProcess", "CrawlerRunner")  # the fourth runs the table
KEPT_LOOP = "an event loop is installed already and stays in use"
COMMON: dict[str, Any] = {
    "ROBOTSTXT_OBEY": True,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "DOWNLOAD_DELAY": 0,
}
COMMON |= {"REDIRECT_MAX_TIMES": 4, "EXTENSIONS": {"tests.integration.stock.watch.Watch": 1}}
ADDED: dict[str, Any] = {
    "ADDONS": {"bigcrawl.addon.Addon": 500},
    "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": True,
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_SERVER_DELAY": 0,
    "BIGCRAWL_PARTITIONS": 4,
    "BIGCRAWL_BACKOFF": 0,
    "BIGCRAWL_HOST_FAILURES_MAX": 0,
    "BIGCRAWL_LAST_FAILURES_MAX": 0,
}
COUNTED = (
    *("downloader/", "retry/", "httperror/", "item_", "response_", "spider_exceptions/", "request_depth_max"),
    *("robotstxt/", "dupefilter/", "log_count/ERROR"),
)


@dataclass(frozen=True)
class Side:
    """How a process ended, what its crawls did with the site's places named, and what it logged."""

    status: int
    told: list[dict[str, Any]]
    log: str


def run(site: Site, directory: Path, crawls: list[Any], runner: str, *, is_offline: bool = False) -> Side:
    """Run the crawls in one process, with one of Scrapy's runners; with or without a network."""
    directory.mkdir(parents=True)
    order = {
        "runner": runner,
        "crawls": crawls,
        "arguments": {"origins": site.origins, "refusing": site.refusing},
        "told": str(directory / "told.json"),
        "is_offline": is_offline,
    }
    words = ["tests.integration.stock.side", json.dumps(order)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = warm.run(words, cwd=directory, env=environment, timeout_s=RUN_S_MAX)
    text = (directory / "told.json").read_text()
    for number, origin in enumerate([*site.origins, site.refusing]):
        text = text.replace(origin, f"http://site{number}")
    return Side(done.returncode, json.loads(text), done.stderr)


@pytest.fixture(scope="session")
def sites() -> Iterator[tuple[Site, Site]]:
    """One for each side, so that both can run at a time."""
    with Site(NETS[0]) as one, Site(NETS[1]) as other:
        yield one, other


@pytest.fixture(scope="session")
def both(
    sites: tuple[Site, Site], tmp_path_factory: pytest.TempPathFactory, redis_url: str
) -> Iterator[Callable[..., tuple[Side, Side]]]:
    """Run the same on stock Scrapy and on bigcrawl, at the same time."""

    def run_both(name: str, runner: str, *cases: Case) -> tuple[Side, Side]:
        directory = tmp_path_factory.mktemp(name)
        crawls = [(case.spider, {**COMMON, **case.settings}) for case in cases]
        added = {**ADDED, "BIGCRAWL_REDIS_URL": redis_url}
        ours = [
            [spider, {**added, "BIGCRAWL_CRAWL": f"{name}-{case}", **settings}]
            for (spider, settings), case in zip(crawls, cases, strict=True)
        ]
        stock = beside.submit(run, sites[0], directory / "stock", crawls, runner)
        found = run(sites[1], directory / "ours", ours, runner)
        return stock.result(), found

    with ThreadPoolExecutor(1) as beside:
        yield run_both


@pytest.fixture(scope="session")
def table(both: Callable[..., tuple[Side, Side]]) -> tuple[Side, Side]:
    """All rows of the table, one after the other, in one process a side."""
    return both("table", "AsyncCrawlerRunner", *CASES)


def comparable(told: dict[str, Any]) -> dict[str, Any]:
    """Items in an order of their own, signals, the stats that a project looks at, and why the spider closed."""
    return {
        "items": sorted(json.dumps(item, sort_keys=True) for item in told["items"]),
        "signals": told["signals"],
        # Bytes go by how long the site's port is; tests/integration/downloads counts them.
        "stats": {k: v for k, v in told["stats"].items() if k.startswith(COUNTED) and not k.endswith("_bytes")},
        "reason": told["reason"],
    }


def differences_of(case: Case, stock: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    wanted, found = comparable(stock), comparable(ours)
    assert bool(case.ours) == bool(case.why)
    for place, value in case.ours.items():
        assert wanted[place] != found[place] or value == ANYTHING
        wanted[place] = found[place] if value == ANYTHING else value
    return differences(wanted, found)


@pytest.mark.parametrize("number", range(len(CASES)), ids=map(str, CASES))
def test_spider_is_as_on_stock_scrapy(table: tuple[Side, Side], number: int) -> None:
    """Items, errbacks, signals, stats and the reason of its end."""
    stock, ours = (side.told[number] for side in table)
    assert stock["reason"]
    assert not (lines := differences_of(CASES[number], stock, ours)), "\n".join(lines)


def test_process_ends_as_on_stock_scrapy(table: tuple[Side, Side]) -> None:
    """With status 0, though some spiders closed early; a runner's own event loop is kept."""
    assert [side.status for side in table] == [0, 0]
    assert KEPT_LOOP in table[1].log


@pytest.mark.parametrize(
    "runner", [RUNNERS[0], *(pytest.param(each, marks=pytest.mark.long("another runner")) for each in RUNNERS[1:])]
)
def test_runner_of_the_documentation_works(both: Callable[..., tuple[Side, Side]], runner: str) -> None:
    """Each of Scrapy's four; with uvloop installed, which a runner's own event loop is not: it is kept, in one line."""
    case = Case("plain")
    stock, ours = both(f"by-{runner}", runner, case)
    assert not (lines := differences_of(case, stock.told[0], ours.told[0])), "\n".join(lines)
    assert stock.status == ours.status == 0
    assert ours.log.count(KEPT_LOOP) == runner.endswith("Runner")


def test_delay_of_a_slot_is_kept(both: Callable[..., tuple[Side, Side]], sites: tuple[Site, Site]) -> None:
    """DOWNLOAD_SLOTS delays the host it names, by the server's own clock, and no other; that is said in one line."""
    for site in sites:
        site.forget()
    slots = {f"{net}.1": {"delay": 1.0} for net in NETS}
    sides = both("slots", "AsyncCrawlerRunner", Case("slots", {"DOWNLOAD_SLOTS": slots, "DOWNLOAD_DELAY_JITTER": 0}))
    for site, side in zip(sites, sides, strict=True):
        slow, quick = (
            sorted((hit.started, hit.ended) for hit in site.pages() if hit.origin == origin and "/page/" in hit.path)
            for origin in site.origins[:2]
        )
        assert len(slow) == len(quick) == len(side.told[0]["items"]) / 2
        if site is sites[1]:
            # From end to start. Stock counts from start to start, which the server sees some time later, or sooner.
            assert all(after[0] - before[1] >= 0.95 for before, after in pairwise(slow))
        assert quick[-1][0] < slow[-1][0]
    said = "delay = 1.0 is kept as one of BIGCRAWL_DELAY_RULES"
    assert [line.count(said) for line in sides[1].log.splitlines() if NETS[1] in line and said in line] == [1]
