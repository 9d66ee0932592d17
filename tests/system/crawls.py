"""Crawls of the corpora. They and the closure share nginx's log, where each one is told by its agent."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.support.crawling.crawls import Crawl
from tests.system.corpora import ROBOTS_AGENT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.nginx import NginxSites

DELAY_MS = 100


def agent_of(name: str) -> str:
    """What the crawl of that name sends as its User-Agent."""
    return f"{ROBOTS_AGENT}/{name} (+test)"


def crawl_of(served: NginxSites, directory: Path, name: str, *, sites: int | None = None, **settings: object) -> Crawl:
    """A crawl of the first `sites`, or all."""
    settings = {"BIGCRAWL_HOST_DELAY": DELAY_MS / 1000, "USER_AGENT": agent_of(name), **settings}
    addresses = [site.address for site in served.sites[:sites]]
    seeds = [url for url in served.seeds if urlsplit(url).hostname in addresses]
    return Crawl(directory, seeds, settings, arguments={"allowed_domains": " ".join(addresses)})
