"""Which links are queued: scope and filters for batches, Requests and redirects."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.utils.test import get_crawler

from bigcrawl.config import read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.links import Links
from bigcrawl.middlewares.link_checks import LinkChecks, check_scope, link_checks_of
from bigcrawl.scheduler.adapter.registry import register
from bigcrawl.spiders.broad import BroadSpider
from bigcrawl.url.domain import PublicSuffixes

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "http://www.a.example/dir/page.html"
INSIDE, OUTSIDE = "http://www.a.example/x", "http://b.example/x"


class Frontier:
    """A frontier whose node has joined its crawl."""

    node = SimpleNamespace(crawl=SimpleNamespace(pld_of=PublicSuffixes.bundled().pld))


class Desk:
    """The checks of a crawler whose spider has these seeds."""

    def __init__(self, *seeds: str, **settings: Any) -> None:
        self.crawler = get_crawler(Spider, settings)
        self.crawler.spider = Spider(name="test", start_urls=list(seeds))
        self.frontier = Frontier()
        register(self.crawler, self.frontier)  # type: ignore[arg-type]
        self.checks = link_checks_of(self.crawler)

    def kept(self, *urls: str, page: str = PAGE, starts: bool = False) -> list[str]:
        return list(self.checks.canonical_urls(Links(urls), page, starts=starts))

    def dropped(self) -> dict[str, int]:
        """What was counted, by reason."""
        self.crawler.signals.send_catch_log(signals.spider_closed)
        assert self.crawler.stats is not None
        prefix = "bigcrawl/dropped/"
        counts = self.crawler.stats.get_stats().items()
        return {key.removeprefix(prefix): count for key, count in counts if key.startswith(prefix)}


def test_batch_that_nothing_rules_is_passed_on_as_it_is() -> None:
    """Without scope and filters the URLs are not looked at one by one."""
    links = Links([INSIDE, OUTSIDE], canonical=True)
    assert Desk().checks.canonical_urls(links, PAGE) is links.urls


def test_links_out_of_scope_are_dropped_and_counted() -> None:
    """Seeds make the scope, and are in it; so is the host of the page."""
    desk = Desk("http://seed.example/", BIGCRAWL_SCOPE="host")
    assert desk.kept(INSIDE, OUTSIDE, "http://seed.example/2") == [INSIDE, "http://seed.example/2"]
    assert desk.kept(OUTSIDE, page="", starts=True) == [OUTSIDE]
    assert desk.dropped() == {"scope": 1}


@pytest.mark.parametrize("page", ["HTTP://WWW.a.example", "data:,x", "", "http://[::"])
def test_page_may_have_any_url(page: str) -> None:
    """That of a Request is as the spider wrote it; what is no web page has no host."""
    desk = Desk(BIGCRAWL_SCOPE="host")
    assert desk.kept(INSIDE, OUTSIDE, page=page) == ([INSIDE] if "WWW" in page else [])


def test_text_that_is_no_canonical_url_is_dropped_alone() -> None:
    """A spider may say of anything that it is canonical; the batch's other links go on."""
    desk = Desk(BIGCRAWL_SCOPE="host", BIGCRAWL_FILTER_CHARACTERS="?")
    links = Links(["http://a.example", "https:///x/", "", INSIDE], canonical=True)
    assert list(desk.checks.canonical_urls(links, PAGE)) == [INSIDE]
    assert desk.dropped() == {"url": 3}


def test_filters_hold_for_seeds_too() -> None:
    """And are counted by their rule."""
    desk = Desk(BIGCRAWL_SCOPE="host", BIGCRAWL_FILTER_EXTENSIONS="pdf")
    assert desk.kept(f"{INSIDE}.pdf", INSIDE, page="", starts=True) == [INSIDE]
    assert desk.dropped() == {"extension": 1}


def test_requests_are_dropped_unless_they_say_otherwise() -> None:
    """As Scrapy's own filters treat `dont_filter`."""
    desk = Desk(BIGCRAWL_SCOPE="host", BIGCRAWL_FILTER_SCHEMES="http")
    assert desk.checks.drops_request(Request(OUTSIDE), PAGE)
    assert desk.checks.drops_request(Request(INSIDE.replace("http", "https")), PAGE)
    assert not desk.checks.drops_request(Request(INSIDE), PAGE)
    assert not desk.checks.drops_request(Request(OUTSIDE, dont_filter=True), PAGE)
    assert not desk.checks.drops_request(Request(OUTSIDE), starts=True)
    assert desk.dropped() == {"scope": 1, "scheme": 1}


def test_seed_may_be_redirected_out_of_scope_and_no_other_page() -> None:
    """Whatever it is, a filter may forbid the target."""
    desk = Desk(BIGCRAWL_SCOPE="host", BIGCRAWL_FILTER_EXTENSIONS="pdf")
    seed, link = Request(PAGE, meta={"depth": 0}), Request(PAGE, meta={"depth": 1})
    assert not desk.checks.drops_redirect(seed, OUTSIDE)
    assert not desk.checks.drops_redirect(link, INSIDE)
    assert desk.checks.drops_redirect(link, OUTSIDE)
    assert desk.checks.drops_redirect(seed, f"{OUTSIDE}.pdf")
    anywhere = Request(PAGE, meta={"depth": 1}, dont_filter=True)
    assert not desk.checks.drops_redirect(anywhere, f"{OUTSIDE}.pdf")
    assert desk.dropped() == {"scope": 1, "extension": 1}


def test_components_of_a_crawler_share_its_checks() -> None:
    """So that a scope of many seeds is made once."""
    desk = Desk()
    assert link_checks_of(desk.crawler) is desk.checks
    assert link_checks_of(get_crawler(Spider)) is not desk.checks


@pytest.mark.parametrize(
    ("settings", "spider", "message"),
    [
        ({"BIGCRAWL_SCOPE": "list"}, Spider("a"), "BIGCRAWL_SCOPE_LIST is empty: name the allowed targets of links"),
        ({"BIGCRAWL_SCOPE_LIST": ["re:x"]}, Spider("a"), "BIGCRAWL_SCOPE_LIST has 're:x'"),
        ({"BIGCRAWL_SCOPE": "prefix"}, Spider("a"), "names no seeds: give it start_urls"),
        (
            {"BIGCRAWL_SCOPE": "host"},
            BroadSpider("missing.txt"),
            "this node cannot read them: copy their file to each node",
        ),
    ],
)
def test_scope_that_cannot_be_made_is_an_error_with_a_remedy(
    settings: dict[str, Any], spider: Spider, message: str
) -> None:
    """Before anything is fetched."""
    with pytest.raises(ConfigError, match=message):
        check_scope(read_config(settings).filters, spider)


def test_scope_of_a_spiders_arguments_is_a_setting(tmp_path: Path) -> None:
    """One that all nodes share; seeds that are no URLs make nothing."""
    seeds, names = tmp_path / "seeds.txt", tmp_path / "names.txt"
    seeds.write_text("HTTP://A.example/x\nno url\n")
    names.write_text("b.example\n")
    crawler = Crawler(BroadSpider)  # its settings are not frozen yet
    spider = BroadSpider.from_crawler(crawler, seeds=str(seeds), scope="list", scope_list=str(names))
    filters = read_config(crawler.settings).filters
    assert (filters.scope, filters.scope_list) == ("list", ("b.example",))
    assert list(spider.scope_seeds()) == ["http://a.example/x"]
    assert read_config(Crawler(BroadSpider).settings).filters.scope == "any"


def test_without_a_frontier_redirects_are_scrapys() -> None:
    """The checks belong to the frontier."""
    crawler = get_crawler(Spider, {"BIGCRAWL_FILTER_EXTENSIONS": "pdf"})
    assert not LinkChecks(crawler).drops_redirect(Request(PAGE), f"{OUTSIDE}.pdf")
