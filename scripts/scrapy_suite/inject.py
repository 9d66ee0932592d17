"""A pytest plugin (`-p inject`): each crawler of Scrapy's own tests gets bigcrawl's add-on.

Crawls have no delays, eight connections a host, loopback and no WARC files, as Scrapy's own have. robots.txt is
ignored, and nothing is said of that: the mock server has none. What the log says, and which loggers say it, is as
Scrapy's.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import shutil
import tempfile
from typing import Any

import scrapy.crawler

import bigcrawl.addon

ROOT = tempfile.mkdtemp(prefix="scrapy-suite-")
SETTINGS: dict[str, Any] = {
    "BIGCRAWL_WARC_DIR": "",
    "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": True,
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_SERVER_DELAY": 0,
    "BIGCRAWL_HOST_CONNECTIONS": 8,
    "BIGCRAWL_ROBOTS": "ignore-i-own-these-hosts",
    "BIGCRAWL_BACKOFF": 1,
    "BIGCRAWL_PARTITIONS": 8,
    "BIGCRAWL_DOWNLOAD_FACTOR": 0,
    "BIGCRAWL_FINGERPRINTS": True,
    "STATS_DUMP": True,
    "LOG_FORMATTER": "scrapy.logformatter.LogFormatter",
}

logging.getLogger("bigcrawl.installing").addFilter(lambda record: "IGNORED" not in record.getMessage())
atexit.register(shutil.rmtree, ROOT, True)
_numbers = itertools.count()
_apply = scrapy.crawler.Crawler._apply_settings


def _apply_with_addon(self: Any) -> Any:
    if not self.settings.frozen:
        name = f"t{os.getpid()}-{next(_numbers)}"
        own = {
            "BIGCRAWL_CRAWL": name,
            "BIGCRAWL_STATE_DIR": f"{ROOT}/{name}",
            "BIGCRAWL_REDIS_URL": os.environ["SCRAPY_SUITE_REDIS"],
        }
        for setting, value in {**SETTINGS, **own}.items():
            keeps_delay = setting == "BIGCRAWL_HOST_DELAY" and self.settings.getfloat("DOWNLOAD_DELAY")
            if not keeps_delay and not self.settings.getpriority(setting):
                self.settings.set(setting, value, "project")
        addons = {**self.settings.getdict("ADDONS"), "bigcrawl.addon.Addon": 500}
        self.settings.set("ADDONS", addons, "project")
    return _apply(self)


scrapy.crawler.Crawler._apply_settings = _apply_with_addon  # type: ignore[method-assign]
bigcrawl.addon._fetches_single_pages = lambda crawler: False  # Scrapy's tests apply settings before there is a spider
