"""Scrapy's feed exports: several formats in files, in batches, packed, and one in S3."""

from __future__ import annotations

from tests.plugins.base import PluginSpider

SETTINGS: dict[str, str] = {}  # the feeds are those of the test


class Answered:
    def __init__(self, options):
        """Takes what Scrapy gives it."""

    def accepts(self, item):
        return "status" in item


class Spider(PluginSpider):
    pass
