"""The settings of a Scrapy project; what is bigcrawl's are the add-on and the contact."""

from __future__ import annotations

BOT_NAME = "crawls"
SPIDER_MODULES = ["crawls.spiders"]
USER_AGENT = "mybot/1.0"

ADDONS = {"bigcrawl.addon.Addon": 500}
BIGCRAWL_CONTACT = None  # a web page or mail address of yours; servers are told
