"""bigcrawl's resolver under Scrapy's own handlers: names resolve, and the operator's network is closed on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.crawling.plain_project import ROBOTS, Answer, NotedSite, PlainProject

if TYPE_CHECKING:
    from pathlib import Path

OPEN: dict[str, Any] = {"TWISTED_DNS_RESOLVER": "bigcrawl.middlewares.dns.Resolver", "RETRY_ENABLED": False}
GUARDED = {**OPEN, "TWISTED_DNS_RESOLVER": "bigcrawl.middlewares.dns_guarded.GuardedResolver"}


@pytest.mark.parametrize(
    "settings",
    [
        OPEN,
        {**GUARDED, "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": True},
        {**GUARDED, "BIGCRAWL_ALLOW_ADDRESSES": ["127.0.0.0/8", "::1"]},
    ],
    ids=["open", "opened", "a part opened"],
)
def test_names_and_addresses_are_connected_to(tmp_path: Path, settings: dict[str, Any]) -> None:
    """A name of the machine's own, a literal, and a name that does not exist."""
    with NotedSite() as site, PlainProject(tmp_path, **settings) as project:
        named, literal = site.url("127.0.0.1", "/a", "localhost"), site.url("127.0.0.2", "/b")
        nowhere = "http://no-such-name.invalid/"
        log = project.run(named, literal, nowhere)
    assert project.items == {named: 200, literal: 200, nowhere: "CannotResolveHostError"}, log
    assert "is refused" not in log
    assert "Traceback" not in log


def test_guard_refuses_what_is_inside(tmp_path: Path) -> None:
    """By name and by literal, for pages and for robots.txt; the log says why, once."""
    settings = {**GUARDED, "DOWNLOADER_MIDDLEWARES": ROBOTS}
    with NotedSite({"/in": Answer(302, headers={"Location": "http://127.0.0.1/"})}) as site:
        with PlainProject(tmp_path / "pages", **GUARDED) as project:
            urls = [site.url("127.0.0.1", "/a", "localhost"), site.url("127.0.0.2", "/b"), "http://169.254.169.254/c"]
            log = project.run(*urls, LOG_LEVEL="INFO")
            assert project.items == dict.fromkeys(urls, "CannotResolveHostError")
            assert log.count("is refused: loopback; BIGCRAWL_ALLOW_PRIVATE_ADDRESSES allows it") == 1
            assert "Traceback" not in log
        with PlainProject(tmp_path / "robots", **settings) as project:
            project.run(*urls)
            assert project.items == dict.fromkeys(urls, "ForbiddenByRobotsError")
    assert site.paths() == []
