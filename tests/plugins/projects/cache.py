"""Scrapy's HTTP cache: what it has is asked for no more."""

from __future__ import annotations

from tests.plugins.base import PluginSpider

SETTINGS = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_IGNORE_HTTP_CODES": [503], "HTTPCACHE_DIR": "cache"}


class Spider(PluginSpider):
    pass
