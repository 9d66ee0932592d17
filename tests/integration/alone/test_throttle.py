"""ThrottleMiddleware and PoliteQueue in a plain project: rests as the server saw them, and who waits for whom."""

from __future__ import annotations

import itertools
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.plain_project import QUEUE, ROBOTS, THROTTLE, Answer, NotedSite, PlainProject
from tests.support.running.processes import wait_until
from tests.support.servers.named_web import NamedWeb

if TYPE_CHECKING:
    from pathlib import Path

SLACK_S = 0.02  # two clocks' worth of milliseconds
# From start to start. A busy machine sends a request late, so all gaps together are held; without a gap all starts come
# at once. Each gap is held in stepped time: tests/unit/scheduler/gates.
GAP_S, KEPT = 3, 0.7
DELAY_S = 0.3
ALONE = {"DOWNLOADER_MIDDLEWARES": THROTTLE, "BIGCRAWL_HOST_DELAY": DELAY_S, "BIGCRAWL_SERVER_DELAY": 0}
QUEUED = {**ALONE, "SCHEDULER_PRIORITY_QUEUE": QUEUE}


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(ALONE, marks=pytest.mark.long("the same without its queue"), id="in place"),
        pytest.param(QUEUED, id="queue"),
    ],
)
def test_host_rests_from_the_end_of_a_fetch_to_the_start_of_the_next(tmp_path: Path, settings: dict) -> None:
    """One connection a host, and its delay behind each answer however slow; hosts do not wait for each other."""
    hosts, paths = ["127.0.0.2", "127.0.0.3", "127.0.0.4"], ["/slow", "/a", "/b", "/c"]
    all_begun = threading.Barrier(len(hosts))  # none has an end before all have begun, but for one that waits for it
    with NotedSite() as site, PlainProject(tmp_path, **settings) as project:

        def answer(host: str, path: str, visits: int) -> Answer:
            if not site.paths(host):
                all_begun.wait(120)
            return Answer(seconds=0.4 if path == "/slow" else 0)

        for host, path in itertools.product(hosts, paths):
            site.answers[host + path] = partial(answer, host, path)
        urls = [site.url(host, path) for host in hosts for path in paths]
        log = project.run(*urls)
    assert project.items == dict.fromkeys(urls, 200), log
    for host in hosts:
        assert min(site.rests(host)) >= DELAY_S - SLACK_S
    assert not all_begun.broken, "no host waits for another one's end"
    assert "within this process" in log
    assert ("count towards CONCURRENT_REQUESTS" in log) is (settings is ALONE)
    assert "Traceback" not in log


def test_servers_are_found_by_the_name_servers_that_are_set(tmp_path: Path) -> None:
    """BIGCRAWL_DNS_SERVERS counts without bigcrawl's resolver too; Scrapy's own then knows no such name."""
    settings = {**ALONE, "BIGCRAWL_SERVER_DELAY": 0.1, "RETRY_ENABLED": False}
    names = {"only-here.test": "127.0.0.2"}
    with NamedWeb(["127.0.0.2"], names, {}) as web, PlainProject(tmp_path, **settings) as project:
        url = web.url("only-here.test")
        log = project.run(url, BIGCRAWL_DNS_SERVERS=web.name_server)
    assert project.items == {url: "CannotResolveHostError"}, log
    assert web.zone.asked["only-here.test"]


def test_more_connections_keep_the_delay_between_starts(tmp_path: Path) -> None:
    """With BIGCRAWL_HOST_CONNECTIONS above 1 fetches overlap, their starts a delay apart."""
    answers = {f"/{n}": Answer(seconds=5) for n in range(4)}
    settings = {**QUEUED, "BIGCRAWL_HOST_DELAY": GAP_S, "BIGCRAWL_HOST_CONNECTIONS": 2}
    with NotedSite(answers) as site, PlainProject(tmp_path, **settings) as project:
        project.run(*[site.url("127.0.0.2", f"/{n}") for n in range(4)])
    starts = sorted(visit.start for visit in site.visits)
    assert len(starts) == 4
    assert starts[-1] - starts[0] >= KEPT * GAP_S * (len(starts) - 1)
    assert min(site.rests("127.0.0.2")) < 0  # two at a time
    running = [sum(other.start <= visit.start < other.end for other in site.visits) for visit in site.visits]
    assert max(running) == 2


def test_server_that_asks_for_a_rest_gets_it_and_nobody_else_waits(tmp_path: Path) -> None:
    """After 429 the host is left alone for Retry-After, then retried; two places are enough for others meanwhile."""
    refusing = {"127.0.0.2/0": lambda visits: Answer(429 if visits == 0 else 200, headers={"Retry-After": "20"})}
    with NotedSite(refusing) as site, PlainProject(tmp_path, **QUEUED, CONCURRENT_REQUESTS=2) as project:
        resting = [site.url("127.0.0.2", f"/{n}") for n in range(4)]
        others = [site.url(f"127.0.1.{n}", "/") for n in range(1, 7)]
        project.run(*resting, *others)
    assert project.items == dict.fromkeys(resting + others, 200), project.log
    first = next(visit for visit in site.visits if visit.host == "127.0.0.2")
    later = [visit.start for visit in site.visits if visit.host == "127.0.0.2" and visit is not first]
    assert min(later) - first.end >= 20 - SLACK_S
    assert max(visit.end for visit in site.visits if visit.host != "127.0.0.2") < min(later)
    assert project.stat("bigcrawl/alone/back_off") == 1


def test_host_that_refuses_connections_is_asked_less_and_less(tmp_path: Path) -> None:
    """A connection failure is the host's: its next URL waits for ten seconds and more."""
    with NotedSite() as site, PlainProject(tmp_path, **QUEUED, RETRY_ENABLED=False) as project:
        dead = ["http://127.0.0.9:9/a", "http://127.0.0.9:9/b"]
        well = [site.url("127.0.0.2", f"/{n}") for n in range(3)]
        began = time.monotonic()
        project.start(*dead, *well)
        project.wait()
        ended = time.monotonic()
    assert ended - began > 10, "between the two tries of the dead host"
    assert len(site.visits) == 3
    assert list(project.items)[-1] in dead, "the others are fetched meanwhile"
    assert [project.items[url] for url in dead] == ["DownloadConnectionRefusedError"] * 2
    assert project.stat("bigcrawl/alone/back_off") == 2


@pytest.mark.parametrize("robots", [ROBOTS, {}], ids=["ours", "scrapys"])
def test_crawl_delay_is_kept_whoever_read_it(tmp_path: Path, robots: dict) -> None:
    """Crawl-delay counts, from the robots.txt itself on, up to the cap, from our middleware and from Scrapy's."""
    body = b"User-agent: plainbot\nCrawl-delay: 1\nDisallow: /x\n\nUser-agent: *\nCrawl-delay: 60\n"
    settings = {**QUEUED, "DOWNLOADER_MIDDLEWARES": {**THROTTLE, **robots}, "ROBOTSTXT_OBEY": not robots}
    with NotedSite({"/robots.txt": Answer(body=body)}) as site, PlainProject(tmp_path, **settings) as project:
        project.run(*[site.url("127.0.0.2", f"/{n}") for n in range(3)])
    assert site.paths()[0] == "/robots.txt"
    assert sorted(site.paths()[1:]) == ["/0", "/1", "/2"]
    rests = site.rests("127.0.0.2")
    assert min(rests[1:]) >= 1 - SLACK_S
    assert max(rests) < 60 - SLACK_S, "the group of our name"
    if robots:
        assert rests[0] >= 1 - SLACK_S


def test_servers_of_many_hosts_have_their_gap(tmp_path: Path) -> None:
    """Two names of one address are two hosts and one server: the gap lies between all starts."""
    settings = {**QUEUED, "BIGCRAWL_HOST_DELAY": 0, "BIGCRAWL_SERVER_DELAY": GAP_S}
    with NotedSite() as site, PlainProject(tmp_path, **settings) as project:
        urls = [site.url("127.0.0.1", f"/{n}", name) for n in range(3) for name in ("", "localhost")]
        project.run(*urls)
    assert project.items == dict.fromkeys(urls, 200)
    assert {visit.host for visit in site.visits} == {"127.0.0.1", "localhost"}
    starts = sorted(visit.start for visit in site.visits)
    assert starts[-1] - starts[0] >= KEPT * GAP_S * (len(starts) - 1)


@pytest.mark.parametrize("settings", [ALONE, QUEUED], ids=["in place", "queue"])
def test_stopped_crawl_does_not_wait_for_a_resting_host_and_goes_on_later(tmp_path: Path, settings: dict) -> None:
    """Ctrl-C ends a crawl at once that waits for an hour; with JOBDIR the waiting URLs are fetched by the next."""
    resting = {"/0": lambda visits: Answer(503 if visits == 0 else 200, headers={"Retry-After": "3600"})}
    with NotedSite(resting) as site, PlainProject(tmp_path, **settings, JOBDIR="job") as project:
        urls = [site.url("127.0.0.2", f"/{n}") for n in range(4)]
        project.start(*urls)
        wait_until(lambda: len(site.visits) > 0 and "Retry" in project.log, "a refusal")
        project.interrupt()
        assert project.wait() == 0
        before = dict(project.items)
        project.start("", LOG_LEVEL="INFO")
        project.wait()
        assert {**before, **project.items} == dict.fromkeys(urls, 200), project.log
    assert "Traceback" not in project.log


@pytest.mark.parametrize(
    ("failures_max", "failures"), [({}, 8), ({"BIGCRAWL_HOST_FAILURES_MAX": 3}, 3)], ids=["unset", "set"]
)
def test_host_that_never_answers_is_retired(tmp_path: Path, failures_max: dict, failures: int) -> None:
    """After so many failures in a row the rest of its URLs end at once, counted, and the log says so once."""
    settings = {**QUEUED, "BIGCRAWL_BACKOFF": 0.01, "RETRY_ENABLED": False, **failures_max}
    with PlainProject(tmp_path, **settings) as project:
        urls = [f"http://127.0.0.9:9/{n}" for n in range(12)]
        log = project.run(*urls)
    ends = list(project.items.values())
    assert ends.count("DownloadConnectionRefusedError") == failures
    assert ends.count("HostRetiredError") == 12 - failures
    assert project.stat("bigcrawl/alone/retired") == 12 - failures
    assert log.count("gets no more requests from this process") == 1
