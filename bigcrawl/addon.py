"""`ADDONS = {"bigcrawl.addon.Addon": 500}`: installs the frontier in any Scrapy project.

Settings are set at "addon" priority, so a project can override them, except those that would break a promise:

    AutoThrottle      not loaded: the frontier keeps delays, and Scrapy's slots must not delay again
    ROBOTSTXT_OBEY    off: Scrapy's middleware would fetch robots.txt past the frontier

`scrapy shell`, `fetch`, `view`, `parse` and `check` fetch single pages interactively, with callbacks that cannot be
stored. They use Scrapy's own scheduler and touch no crawl. Commands that make no crawler, such as `scrapy list`, import
only this module; the others import `bigcrawl.installing`, and with it the frontier.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import logging
import sys
from typing import TYPE_CHECKING

from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.log import get_scrapy_root_handler
from scrapy.utils.reactor import (
    is_asyncio_reactor_installed,
    is_reactor_installed,
    verify_installed_asyncio_event_loop,
)

from bigcrawl.logs.installed import INSTALLED, JSON
from bigcrawl.logs.plain import make_plain

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

UVLOOP = "uvloop.Loop"
INSTALLING = "bigcrawl.installing"
"""Imported only where a crawler is made: it takes a third of a second."""
_DEPRECATING = "scrapy.core.downloader.contextfactory"
"""Imported before our modules: it scans all modules, which then takes a fifth of a second."""


class Addon:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """Set what must be set before the reactor exists: its event loop and its resolver."""
        settings.set("TWISTED_DNS_RESOLVER", "bigcrawl.middlewares.dns.Resolver", "addon")
        if importlib.util.find_spec("uvloop"):
            settings.set("ASYNCIO_EVENT_LOOP", UVLOOP, "addon")
        if settings.get("LOG_FORMAT") == JSON and settings.getbool("LOG_INSTALL_ROOT_HANDLER"):
            from bigcrawl.logs.json_lines import install_handler

            install_handler(settings)
            settings.set("LOG_INSTALL_ROOT_HANDLER", False, "cmdline")  # this handler takes its place
        _import_all()  # or the crawler's first fetch would wait for it

    def update_settings(self, settings: BaseSettings) -> None:
        """Install the components; if a setting is wrong, only the one that ends the crawl."""
        _keep_installed_loop(settings)
        INSTALLED.set_level(settings.get("LOG_LEVEL"))
        make_plain(get_scrapy_root_handler())
        if not _fetches_single_pages(self._crawler):
            importlib.import_module(INSTALLING).install(settings, self._crawler)


def _import_all() -> None:
    """Import the modules of a crawl, and exclude them from garbage collection, now and at the process's end."""
    if INSTALLING in sys.modules:
        return
    importlib.import_module(_DEPRECATING)
    is_on = gc.isenabled()
    gc.disable()
    try:
        importlib.import_module(INSTALLING)
    finally:
        gc.freeze()
        if is_on:
            gc.enable()


def _keep_installed_loop(settings: BaseSettings) -> None:
    """Do not use uvloop if a reactor is already installed on another loop."""
    if settings.getpriority("ASYNCIO_EVENT_LOOP") != SETTINGS_PRIORITIES["addon"] or not is_reactor_installed():
        return
    try:
        if is_asyncio_reactor_installed():
            verify_installed_asyncio_event_loop(settings["ASYNCIO_EVENT_LOOP"])
    except RuntimeError:
        logger.info("an event loop is installed already and stays in use; %(loop)s would be faster", {"loop": UVLOOP})
        settings.set("ASYNCIO_EVENT_LOOP", None, "addon")


def _fetches_single_pages(crawler: Crawler) -> bool:
    """Return whether the command is one of Scrapy's that fetch single pages without a crawl."""
    return crawler.spider is None or crawler.spidercls.start.__module__.startswith("scrapy.commands.")
