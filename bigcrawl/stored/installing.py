"""Further settings of a run over stored pages, besides those that the add-on sets for every crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.stored.handler import StoredPagesHandler
from bigcrawl.stored.scheduler import StoredScheduler

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

MORE_THAN_ENOUGH: Final = 1_000
"""Scrapy's concurrency; the stored pages' scheduler sets its own limit."""

_NETWORK: Final = ("http", "https", "ftp", "s3")
_INSTEAD: Final = {
    "SCHEDULER": StoredScheduler,
    "RETRY_ENABLED": False,  # the answer would be the same
    "HTTPCACHE_ENABLED": False,
}


def install(settings: BaseSettings) -> None:
    """Answer requests from stored pages instead of the network, also in place of the project's own handlers."""
    for name, value in _INSTEAD.items():
        settings.set(name, value, max(settings.getpriority(name) or 0, 15))
    handlers = settings["DOWNLOAD_HANDLERS"]
    priority = max(settings.getpriority("DOWNLOAD_HANDLERS") or 0, 15)
    if hasattr(handlers, "set"):
        for scheme in _NETWORK:
            handlers.set(scheme, StoredPagesHandler if scheme.startswith("http") else None, priority)
    settings.set("CONCURRENT_REQUESTS", MORE_THAN_ENOUGH, max(settings.getpriority("CONCURRENT_REQUESTS") or 0, 15))
