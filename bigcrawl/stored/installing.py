"""Settings of a run over stored pages, besides those that the add-on has set for every crawl before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.stored.handler import StoredPagesHandler
from bigcrawl.stored.scheduler import StoredScheduler

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

MORE_THAN_ENOUGH: Final = 1_000
"""Requests that Scrapy lets run at a time. The scheduler says how many pages are given; others are a callback's own."""

_NETWORK: Final = ("http", "https", "ftp", "s3")
_INSTEAD: Final = {
    "SCHEDULER": StoredScheduler,
    "RETRY_ENABLED": False,  # the answer would be the same
    "HTTPCACHE_ENABLED": False,
}


def install(settings: BaseSettings) -> None:
    """Have requests answered by stored pages instead of the network, whatever handlers the project has set."""
    for name, value in _INSTEAD.items():
        settings.set(name, value, max(settings.getpriority(name) or 0, 15))
    handlers = settings["DOWNLOAD_HANDLERS"]
    priority = max(settings.getpriority("DOWNLOAD_HANDLERS") or 0, 15)
    if hasattr(handlers, "set"):
        for scheme in _NETWORK:
            handlers.set(scheme, StoredPagesHandler if scheme.startswith("http") else None, priority)
    settings.set("CONCURRENT_REQUESTS", MORE_THAN_ENOUGH, max(settings.getpriority("CONCURRENT_REQUESTS") or 0, 15))
