"""The same command again: what a finished crawl says, what an edited spider is told, and how a crawl begins anew."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from tests.integration.test_items import JSON_LINES, crawl, in_json_lines, kill_after, pages_of
from tests.support.crawling.verdicts import warc_files
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

BEGINS_ANEW = ("-O", "items.jl")


def test_crawl_begins_anew_when_told_to(tmp_path: Path, redis_url: str, crawl_name: str) -> None:
    """BIGCRAWL_FRESH forgets what is on disk and in a Redis of one's own; WARC files stay, `-O` empties its file."""
    settings = {"BIGCRAWL_REDIS_URL": redis_url, "BIGCRAWL_CRAWL": crawl_name}
    with crawl(tmp_path, **settings) as (project, site, urls):
        items, warcs = project.directory / "items.jl", project.directory / "warc"
        project.run(*urls, output=BEGINS_ANEW)
        stored = set(warc_files(warcs))
        log = project.run(*urls, output=BEGINS_ANEW)
        assert f"crawl {crawl_name} is finished: {len(urls)} pages, which are not fetched again" in log
        assert pages_of(site) == len(urls)

        log = project.run(*urls, output=BEGINS_ANEW, BIGCRAWL_FRESH=1)
        assert f"crawl {crawl_name} starts from scratch" in log
        assert pages_of(site) == 2 * len(urls)
        assert sorted(in_json_lines(items)) == sorted(urls)
        assert set(warc_files(warcs)) > stored


def test_crawl_whose_nodes_were_killed_begins_anew_at_once(tmp_path: Path) -> None:
    """Nobody waits for the lease of a node that is provably dead; its embedded server is ended, too."""
    with crawl(tmp_path) as (project, site, urls):
        kill_after(20, project, site, urls, JSON_LINES)
        before = pages_of(site)
        project.run(*urls, output=BEGINS_ANEW, BIGCRAWL_FRESH=1)
        assert pages_of(site) - before == len(urls)


def test_running_crawl_is_not_begun_anew(tmp_path: Path) -> None:
    """A second process with BIGCRAWL_FRESH says that the first one is there, and harms nothing."""
    with crawl(tmp_path, BIGCRAWL_CLOSE="forever") as (project, site, urls):
        project.start(*urls, output=JSON_LINES)
        first = project.process
        assert first is not None
        wait_until(lambda: pages_of(site) >= 5, "pages are fetched")
        project.start(*urls, output=("-o", "second.jl"), BIGCRAWL_FRESH=1)
        assert project.wait() == 1
        assert "is running: stop its nodes" in project.log
        wait_until(lambda: pages_of(site) == len(urls), "the first one goes on")
        first.send_signal(signal.SIGINT)
        assert first.wait(300) == 0
        assert sorted(in_json_lines(project.directory / "items.jl")) == sorted(urls)


def test_second_node_leaves_the_first_ones_items(tmp_path: Path) -> None:
    """Two processes of one command, `-O` included, share a crawl and a file of lines; none empties it for the other."""
    with crawl(tmp_path) as (project, site, urls):
        (project.directory / "items.jl").write_text("of another crawl\n")
        project.start(*urls, output=BEGINS_ANEW)
        first = project.process
        assert first is not None
        wait_until(lambda: pages_of(site) >= 2, "the crawl has begun")
        project.run(*urls, output=BEGINS_ANEW)
        assert first.wait(300) == 0
        assert sorted(in_json_lines(project.directory / "items.jl")) == sorted(urls)


def test_feed_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    """Before anything is fetched, and with status 1."""
    with crawl(tmp_path) as (project, site, urls):
        (project.directory / "items.jl").mkdir()
        project.start(*urls, output=BEGINS_ANEW)
        assert project.wait() == 1
        assert "feed items.jl cannot be written" in project.log
        assert pages_of(site) == 0


def test_edited_spider_is_mentioned(tmp_path: Path) -> None:
    """Once a start, from the first start after the edit on; an untouched one never."""
    with crawl(tmp_path) as (project, _, urls):
        said = "the code of spider plain was edited since crawl plain began"
        assert said not in project.run(*urls, output=JSON_LINES, BIGCRAWL_MAX_PAGES=10)
        assert said not in project.run(*urls, output=JSON_LINES, BIGCRAWL_MAX_PAGES=20)
        spider = project.directory / "plain" / "spiders" / "__init__.py"
        spider.write_text(spider.read_text() + "\n# edited\n")
        for pages in (30, 0):
            assert project.run(*urls, output=JSON_LINES, BIGCRAWL_MAX_PAGES=pages).count(said) == 1
