"""A seed at an address of one's own network: why it is not fetched is said, and it is once it may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.crawling.plain_project import Answer, NotedSite, PlainProject

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("policy", ["star", "none"])
def test_seed_waits_until_a_setting_opens_its_address(
    tmp_path: Path, redis_url: str, crawl_name: str, policy: str
) -> None:
    """The line names the settings, the crawl ends without it, and the same command with one of them fetches it.

    What a page links to there is dropped as ever: the pages of the crawl decide nothing about this network.
    """
    link = Answer(headers={"Location": "http://127.0.0.3/"}, status=302)
    settings: dict[str, Any] = {
        "ADDONS": {"bigcrawl.addon.Addon": 500},
        "BIGCRAWL_REDIS_URL": redis_url,
        "BIGCRAWL_CRAWL": crawl_name,
    }
    settings |= {"BIGCRAWL_PARTITIONS": 4, "BIGCRAWL_SERVER_DELAY": 0, "BIGCRAWL_BUDGET_POLICY": policy}
    with NotedSite({"/hop": link}) as site, PlainProject(tmp_path / "project", **settings) as project:
        seeds = [site.url("127.0.0.1", "/page"), site.url("127.0.0.2", "/page")]
        log = project.run(*seeds)
        [line] = [
            line for line in log.splitlines() if "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES" in line and "] WARNING" in line
        ]
        assert "BIGCRAWL_ALLOW_ADDRESSES" in line
        assert "loopback" in line
        assert any(seed in line for seed in seeds)
        assert site.visits == []
        assert (project.wait(), project.items) == (0, {})

        log = project.run(*seeds, BIGCRAWL_ALLOW_ADDRESSES="127.0.0.1")
        assert project.items == {seeds[0]: 200}, log
        assert "127.0.0.2" in log
        project.run(*seeds, BIGCRAWL_ALLOW_PRIVATE_ADDRESSES=1)
        assert project.items == {seeds[1]: 200}
        assert site.paths().count("/page") == 2
