"""The settings of bigcrawl's own Scrapy project: `scrapy crawl broad`."""

from __future__ import annotations

BOT_NAME = "bigcrawl"
SPIDER_MODULES = ["bigcrawl.spiders"]
ADDONS = {"bigcrawl.addon.Addon": 500}
USER_AGENT = "bigcrawl/0.1"  # BIGCRAWL_CONTACT is appended

LOG_LEVEL = "INFO"
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
