"""The spiders that come along, on two nodes that are killed: coverage, overlap and politeness by the origin's log."""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl_simweb.basics.resources import Kind
from bigcrawl_simweb.check.checker import CheckRules, check_exchanges
from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of
from tests.support.crawling.verdicts import assert_complete, pause
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl_simweb.check.checker import Report

pytestmark = [pytest.mark.fault, pytest.mark.timeout(900)]

KILLS = 4
SEED = 1
DELAY_MS = 50
IN_PROCESS_MAX = 16
LISTS = {"sitemap": Kind.SITEMAP, "feeds": Kind.FEED}
"""What a spider that follows no links reads."""
ARGUMENTS = {"focused": {"topic": "bees honey"}, "site": {}, "sitemap": {}, "feeds": {}, "broad": {}}
SETTINGS = {"broad": {"BIGCRAWL_PRIORITIZER": "opic"}}
VISITS = 3


def fast(**more: Any) -> dict[str, Any]:
    settings = {"BIGCRAWL_HOST_DELAY": DELAY_MS / 1000, "BIGCRAWL_PARTITIONS": 16}
    return {**settings, "BIGCRAWL_IN_PROCESS_MAX": IN_PROCESS_MAX, **more}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[SimulatedWeb]:
    served = SimulatedWeb(tmp_path / "web", hosts=20, pages=15, features="changes,feeds,sitemaps")
    with no_strays_below(tmp_path), served:
        yield served


def crawl_with_kills(first: Crawl, second: Crawl, web: SimulatedWeb) -> Counter[str]:
    """Run two nodes, kill -9 the one or the other at random moments, and return what was in process then."""
    moments = random.Random(SEED)
    may_repeat: Counter[str] = Counter()
    first.start()
    wait_until(lambda: len(web.exchanges()) > 20, "the crawl is under way")
    second.start()
    for number in range(KILLS):
        pause(moments.uniform(0.5, 3.0))
        node, other = (second, first) if number % 2 else (first, second)
        other.send(signal.SIGSTOP)  # or it might take over before anybody has looked
        node.kill()
        may_repeat.update(first.taken())
        other.send(signal.SIGCONT)
        node.start()
    assert first.wait(600) == second.wait(600) == 0
    return may_repeat


def report_of(web: SimulatedWeb, spider: str) -> Report:
    """Hold the log to what this spider should have fetched."""
    seeds = web.seeds
    reads: dict[str, bool] = {"read_sitemaps": spider == "sitemap", "read_feeds": spider == "feeds"}
    expected = web.web.reachable(web.saved.port, seeds, **reads)
    if kind := LISTS.get(spider):
        lists = {url for url in expected if getattr(web.web.resource_at(url), "kind", None) is kind}
        listed = {page for url in lists for page in web.web.leads_to(url, web.saved.port)}
        expected = {url: status for url, status in expected.items() if url in {*seeds, *lists, *listed}}
    rules = CheckRules(
        expected=expected,
        port=web.saved.port,
        host_delay_ms=DELAY_MS,
        host_delays_ms=web.web.crawl_delays_ms(),
        retries=2,
        allows=web.web.allows,
    )
    return check_exchanges(web.exchanges(), rules)


@pytest.mark.parametrize("spider", ARGUMENTS)
def test_spider_fetches_its_pages_once_whoever_dies(tmp_path: Path, web: SimulatedWeb, spider: str) -> None:
    """All that it should fetch and nothing else, again only what was in process, and politely over both nodes."""
    settings = fast(**SETTINGS.get(spider, {}))
    first = Crawl(tmp_path / "crawl", web.seeds, settings, arguments=ARGUMENTS[spider], spider=spider)
    with first, second_process_of(first) as second:
        may_repeat = crawl_with_kills(first, second, web)
    assert_complete(report_of(web, spider), may_repeat)


def test_pages_have_their_visits_whoever_dies(tmp_path: Path, web: SimulatedWeb) -> None:
    """With ranks of pages: each page has its visits, one more only if it was in process; and politely."""
    settings = fast(BIGCRAWL_PRIORITIZER="opic", BIGCRAWL_REVISIT_SECONDS_MIN=1)
    arguments = {"policy": "periodic", "every": "5", "visits": str(VISITS)}
    first = Crawl(tmp_path / "crawl", web.seeds, settings, arguments=arguments, spider="recrawl")
    with first, second_process_of(first) as second:
        may_repeat = crawl_with_kills(first, second, web)
    answered = [each for each in web.exchanges() if each.target != "/robots.txt" and each.status in (200, 304)]
    visits = Counter(f"http://{each.host}:{web.saved.port}{each.target}" for each in answered)
    assert set(visits) == {url for url, status in web.expected().items() if status == 200}
    assert min(visits.values()) == VISITS
    more = Counter({url: count - VISITS for url, count in visits.items()})
    assert not more - may_repeat
    rules = CheckRules(
        port=web.saved.port,
        host_delay_ms=DELAY_MS,
        host_delays_ms=web.web.crawl_delays_ms(),
        retries=2,
        allows=web.web.allows,
    )
    report = check_exchanges(web.exchanges(), rules)
    assert report.kinds <= {"refetched", "over_retried"}, str(report)


def test_walks_are_the_same_whoever_dies(tmp_path: Path, web: SimulatedWeb) -> None:
    """Each step of each walk is made, and none beside those that a calm crawl makes; few are fetched twice."""

    def steps(*files: Path) -> set[tuple[int, int, str]]:
        lines = [line for file in files if file.exists() for line in file.read_text().splitlines()]
        return {(item["walk"], item["step"], item["url"]) for item in map(json.loads, lines)}

    def crawled(name: str, *, with_kills: bool) -> tuple[set[tuple[int, int, str]], int]:
        files = [tmp_path / name / f"{node}.jsonl" for node in ("first", "second")]
        feeds = [json.dumps({str(file): {"format": "jsonlines"}}) for file in files]
        first = Crawl(tmp_path / name, web.seeds, fast(FEEDS=feeds[0]), name, {"walks": "150"}, spider="sample")
        before = len(pages_of(web))
        with ExitStack() as stack:
            stack.enter_context(first)
            if with_kills:
                second = stack.enter_context(second_process_of(first))
                second.settings["FEEDS"] = feeds[1]
                crawl_with_kills(first, second, web)
            else:
                assert first.run() == 0
        return steps(*files), len(pages_of(web)) - before

    calm, fetches = crawled("calm", with_kills=False)
    killed, more_fetches = crawled("killed", with_kills=True)
    assert killed == calm
    assert fetches >= len(calm) > 300
    assert more_fetches <= fetches + KILLS * 2 * IN_PROCESS_MAX
    report = web.report(delay_ms=DELAY_MS)
    assert report.kinds <= {"missing", "refetched", "over_retried"}, str(report)


def pages_of(web: SimulatedWeb) -> list[str]:
    return [each.target for each in web.exchanges() if each.target != "/robots.txt"]
