"""The throttle among a project's other parts: caches, middlewares that answer, fetches past the scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.crawling.plain_project import QUEUE, REPOSITORY, ROBOTS, THROTTLE, Answer, NotedSite, PlainProject
from tests.support.running import warm

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SETTINGS: dict[str, Any] = {
    "DOWNLOADER_MIDDLEWARES": THROTTLE,
    "SCHEDULER_PRIORITY_QUEUE": QUEUE,
    "BIGCRAWL_HOST_DELAY": 0.5,
    "BIGCRAWL_SERVER_DELAY": 0,
}


@pytest.mark.long("a cache in front of the throttle; in front of the frontier: tests/integration/scrapy_compat")
def test_answer_from_a_cache_waits_for_nobody(tmp_path: Path) -> None:
    """Scrapy's HTTP cache answers in front of the throttle: no rest is kept, and a cached 503 blames no host."""
    settings = {**SETTINGS, "HTTPCACHE_ENABLED": True, "RETRY_ENABLED": False}
    refusing = {"/0": Answer(503, headers={"Retry-After": "1"})}
    with NotedSite(refusing) as site, PlainProject(tmp_path, **settings) as project:
        urls = [site.url("127.0.0.2", f"/{n}") for n in range(4)]
        project.run(*urls)
        assert project.stat("bigcrawl/alone/back_off") == 1
        seen = len(site.visits)
        project.run(*urls)
    assert seen == 4
    assert len(site.visits) == seen
    assert project.stat("bigcrawl/alone/back_off") == 0
    assert project.stat("httpcache/hit") == 4


def test_middleware_behind_it_that_takes_the_request_does_not_block_the_host(tmp_path: Path) -> None:
    """A request that never reaches the network gives its host's turn back."""
    taking = {**THROTTLE, "tests.integration.alone.taking.TakesTheFirst": 960}
    with NotedSite() as site, PlainProject(tmp_path, **{**SETTINGS, "DOWNLOADER_MIDDLEWARES": taking}) as project:
        urls = [site.url("127.0.0.2", f"/{n}") for n in range(3)]
        log = project.run(*urls)
    assert project.items == dict.fromkeys(urls, 200), log
    assert log.count("took") == 1


def test_redirects_and_retries_keep_the_delay(tmp_path: Path) -> None:
    """Whatever Scrapy's middlewares make of an answer is a fetch like any other."""
    answers: dict[str, Answer | Callable[[int], Answer]] = {
        "/from": Answer(302, headers={"Location": "/to"}),
        "/again": lambda visits: Answer(500 if visits == 0 else 200),
    }
    with NotedSite(answers) as site, PlainProject(tmp_path, **SETTINGS) as project:
        project.run(site.url("127.0.0.2", "/from"), site.url("127.0.0.2", "/again"))
    assert sorted(site.paths()) == ["/again", "/again", "/from", "/to"]
    assert min(site.rests("127.0.0.2")) >= 0.48


def test_shell_and_fetch_work(tmp_path: Path) -> None:
    """Scrapy's commands for one look fetch through the same middlewares, and end."""
    settings = {**SETTINGS, "DOWNLOADER_MIDDLEWARES": {**THROTTLE, **ROBOTS}}
    with NotedSite() as site, PlainProject(tmp_path, **settings) as project:
        for words in (["fetch", "--nolog"], ["shell", "--nolog", "-c", "print(response.text)"]):
            done = warm.run(
                ["scrapy", *words, site.url("127.0.0.2", "/a")],
                cwd=project.directory,
                env={"PYTHONPATH": str(REPOSITORY)},
            )
            assert "page" in done.stdout, done.stderr
    assert site.paths() == ["/robots.txt", "/a"] * 2
