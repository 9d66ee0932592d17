"""The parts where they have no place: beside the add-on, twice, without the asyncio reactor, one without the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider
from scrapy.exceptions import NotConfigured
from scrapy.utils.test import get_crawler

from bigcrawl.pipelines.warc import WarcPipeline
from tests.support.crawling.plain_project import QUEUE, ROBOTS, THROTTLE, Answer, NotedSite, PlainProject

if TYPE_CHECKING:
    from pathlib import Path

WARC = "bigcrawl.pipelines.warc.WarcPipeline"
GUARDED = "bigcrawl.middlewares.dns_guarded.GuardedResolver"
EVERYTHING: dict[str, Any] = {
    "DOWNLOADER_MIDDLEWARES": {**ROBOTS, **THROTTLE},
    "SCHEDULER_PRIORITY_QUEUE": QUEUE,
    "TWISTED_DNS_RESOLVER": GUARDED,
    "ITEM_PIPELINES": {WARC: 900},
    "DUPEFILTER_CLASS": "bigcrawl.scheduler.dupefilter.DrumDupeFilter",
    "BIGCRAWL_WARC_DIR": "warc",
    "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": True,
    "BIGCRAWL_HOST_DELAY": 0.2,
    "BIGCRAWL_SERVER_DELAY": 0,
}


@pytest.mark.long("a crawl like that of test_simulated_web.py, with the settings of the page")
def test_all_parts_together_work_and_need_no_redis(tmp_path: Path) -> None:
    """As docs/alone.md has them: pages fetched, stored, and nothing of the frontier left behind."""
    rules = Answer(body=b"User-agent: *\nDisallow: /no\n")
    with NotedSite({"/robots.txt": rules}) as site, PlainProject(tmp_path, **EVERYTHING) as project:
        urls = [site.url(host, path) for host in ("127.0.0.2", "127.0.0.3") for path in ("/a", "/b", "/no")]
        log = project.run(*urls)
    assert project.items == {url: "ForbiddenByRobotsError" if url.endswith("no") else 200 for url in urls}, log
    assert sorted(site.paths()) == ["/a", "/a", "/b", "/b", "/robots.txt", "/robots.txt"]
    assert project.stat("bigcrawl/warc/records") == 1 + 3 * 6
    assert not (tmp_path / "state").exists()
    assert "Traceback" not in log
    assert "WARNING" not in log


def test_beside_the_addon_they_step_aside(tmp_path: Path, redis_url: str, crawl_name: str) -> None:
    """The frontier does their work: the crawl is the same, pages are stored once, and the log says who is off."""
    frontier = {
        "ADDONS": {"bigcrawl.addon.Addon": 500},
        "BIGCRAWL_REDIS_URL": redis_url,
        "BIGCRAWL_CRAWL": crawl_name,
        "BIGCRAWL_PARTITIONS": 4,
        "BIGCRAWL_PROGRESS_SECONDS": 0,
    }
    with NotedSite() as site, PlainProject(tmp_path, **EVERYTHING, **frontier) as project:
        urls = [site.url("127.0.0.2", path) for path in ("/a", "/b")]
        log = project.run(*urls)
    assert project.items == dict.fromkeys(urls, 200), log
    assert site.paths() == ["/robots.txt", "/a", "/b"]
    assert project.stat("bigcrawl/warc/records") == 1 + 3 * 3
    assert "Disabled bigcrawl.middlewares.robots.RobotsMiddleware: bigcrawl's add-on is in use" in log
    assert "Disabled bigcrawl.middlewares.throttle.ThrottleMiddleware: bigcrawl's add-on is in use" in log
    assert "by this process alone" not in log
    assert "Traceback" not in log


def test_twice_is_once(tmp_path: Path) -> None:
    """A subclass beside the class itself: the second steps aside, and nobody waits for itself or stores twice."""
    both = {
        "DOWNLOADER_MIDDLEWARES": {
            **ROBOTS,
            **THROTTLE,
            "tests.integration.alone.hasty.HastyRobots": 101,
            "tests.integration.alone.hasty.HastyThrottle": 951,
        },
        "ITEM_PIPELINES": {WARC: 900, "tests.integration.alone.hasty.SecondWarc": 901},
    }
    with NotedSite() as site, PlainProject(tmp_path, **{**EVERYTHING, **both}) as project:
        url = site.url("127.0.0.2", "/a")
        log = project.run(url)
    assert project.items == {url: 200}
    assert site.paths() == ["/robots.txt", "/a"]
    assert project.stat("bigcrawl/warc/records") == 1 + 3 * 2
    for name in ("HastyRobots", "HastyThrottle", "SecondWarc"):
        assert f"Disabled tests.integration.alone.hasty.{name}: there is another" in log
    assert "Traceback" not in log


@pytest.mark.parametrize(
    "settings",
    [
        {"DOWNLOADER_MIDDLEWARES": ROBOTS},
        {"DOWNLOADER_MIDDLEWARES": THROTTLE},
        {"TWISTED_DNS_RESOLVER": GUARDED},
        {"TWISTED_DNS_RESOLVER": "bigcrawl.middlewares.dns.Resolver"},
    ],
    ids=["robots", "throttle", "guarded resolver", "resolver"],
)
def test_without_the_asyncio_reactor_nothing_is_fetched(tmp_path: Path, settings: dict[str, Any]) -> None:
    """Politeness that cannot work stops the start, with a word on what to set."""
    other = {**settings, "TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"}
    with NotedSite() as site, PlainProject(tmp_path, **other) as project:
        log = project.run(site.url("127.0.0.2", "/a"))
        assert project.process is not None
        assert project.process.returncode == 1, log
    assert site.paths() == []
    assert "needs the asyncio reactor; leave TWISTED_REACTOR as it is" in log


def test_pages_are_stored_without_the_asyncio_reactor(tmp_path: Path) -> None:
    """The WARC pipeline does not care which reactor it is."""
    settings = {
        "TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor",
        "ITEM_PIPELINES": {WARC: 900},
        "BIGCRAWL_WARC_DIR": "warc",
    }
    with NotedSite() as site, PlainProject(tmp_path, **settings) as project:
        url = site.url("127.0.0.2", "/a")
        log = project.run(url)
    assert project.items == {url: 200}, log
    assert project.stat("bigcrawl/warc/records") == 4
    assert "Traceback" not in log


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"SCHEDULER_PRIORITY_QUEUE": QUEUE}, "which needs ThrottleMiddleware; add"),
        ({"DOWNLOADER_MIDDLEWARES": THROTTLE, "BIGCRAWL_HOST_DELAY": -1}, "BIGCRAWL_HOST_DELAY is -1; must be"),
        ({"DOWNLOADER_MIDDLEWARES": ROBOTS, "BIGCRAWL_ROBOT": "obey"}, "did you mean BIGCRAWL_ROBOTS?"),
        ({"ITEM_PIPELINES": {WARC: 900}, "BIGCRAWL_WARC_DIR": "warc", "BIGCRAWL_WARC": 1}, "unknown setting"),
    ],
    ids=["queue alone", "out of bounds", "unknown", "unknown beside warc"],
)
def test_wrong_settings_stop_the_start(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    """What is wrong is said with what would be right, and nothing is fetched."""
    with NotedSite() as site, PlainProject(tmp_path, **settings) as project:
        log = project.run(site.url("127.0.0.2", "/a"))
    assert site.paths() == []
    assert message in log


def test_pipeline_without_a_directory_is_off_and_says_so(tmp_path: Path) -> None:
    """The page is crawled and not stored; the log has a warning."""
    with NotedSite() as site, PlainProject(tmp_path, ITEM_PIPELINES={WARC: 900}) as project:
        log = project.run(site.url("127.0.0.2", "/a"))
    assert site.paths() == ["/a"]
    assert "BIGCRAWL_WARC_DIR is not set: pages are not stored" in log


def test_second_pipeline_is_refused_for_the_same_crawler_alone(tmp_path: Path) -> None:
    """Two crawlers of one process have each their own."""
    settings = {"BIGCRAWL_WARC_DIR": str(tmp_path)}
    crawler = get_crawler(Spider, settings)
    kept = WarcPipeline.from_crawler(crawler)
    with pytest.raises(NotConfigured):
        WarcPipeline.from_crawler(crawler)
    assert WarcPipeline.from_crawler(get_crawler(Spider, settings)) is not kept
