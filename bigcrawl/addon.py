"""`ADDONS = {"bigcrawl.addon.Addon": 500}`: installs the frontier in any Scrapy project.

Settings are set at "addon" priority, so a project overrides them, but for those that would break a promise:

    DOWNLOAD_DELAY, AUTOTHROTTLE_ENABLED    Scrapy's slots must not delay a second time: off
    ROBOTSTXT_OBEY                          Scrapy's would fetch robots.txt past the frontier: off, ours obeys
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from bigcrawl.config import read_config
from bigcrawl.default_settings import BY_NAME
from bigcrawl.downloader import Downloader
from bigcrawl.exceptions import ConfigError
from bigcrawl.extensions.exit_status import ExitStatus
from bigcrawl.extensions.progress import Progress
from bigcrawl.middlewares.links import LinksMiddleware
from bigcrawl.pipelines.warc import WarcPipeline
from bigcrawl.scheduler.scheduler import Scheduler

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

_TAKEN_OVER = {"DOWNLOAD_DELAY": 0, "AUTOTHROTTLE_ENABLED": False, "ROBOTSTXT_OBEY": False}


class Addon:
    """See the module."""

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """What must be set before there is a reactor: the resolver, on the frontier's DNS cache."""
        settings.set("TWISTED_DNS_RESOLVER", "bigcrawl.middlewares.dns.Resolver", "addon")

    def update_settings(self, settings: BaseSettings) -> None:
        """Install the components; a wrong setting ends the program with one line."""
        try:
            config = read_config(settings)
        except ConfigError as error:
            _refuse(error)
            return
        for name in ("BIGCRAWL_WARC_DIR", "BIGCRAWL_HOST_DELAY"):
            if settings.get(name) is None:
                settings.set(name, BY_NAME[name].default, "addon")
        settings.set("BIGCRAWL_HOST_DELAY", config.politeness.host_delay_ms / 1000, "addon")
        settings.set("SCHEDULER", Scheduler, "addon")
        settings.set("DOWNLOADER", Downloader, "addon")
        settings.set("CONCURRENT_REQUESTS", 64, "addon")
        settings.set("CONCURRENT_ITEMS", 1, "addon")
        settings.set_in_component_priority_dict("SPIDER_MIDDLEWARES", LinksMiddleware, 10)
        if config.crawl.warc_dir is not None:
            settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", WarcPipeline, 900)
        settings.setdefault_in_component_priority_dict("EXTENSIONS", Progress, 500)
        settings.setdefault_in_component_priority_dict("EXTENSIONS", ExitStatus, 500)
        self._take_over(settings)

    def _take_over(self, settings: BaseSettings) -> None:
        for name, value in _TAKEN_OVER.items():
            if settings.get(name) != value:
                if (settings.getpriority(name) or 0) > 0:
                    logger.info("%(name)s is bigcrawl's business and set to %(value)s", {"name": name, "value": value})
                settings.set(name, value, max(settings.getpriority(name) or 0, 15))


def _refuse(error: ConfigError) -> None:
    """Say what is wrong in one line, and end with status 1: Scrapy would show a traceback."""
    print(f"bigcrawl: {error}", file=sys.stderr, flush=True)  # noqa: T201
    raise SystemExit(1)
