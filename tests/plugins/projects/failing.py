"""Plug-ins' download handlers that raise errors of their own, or lack their library: more URLs than a host may fail."""

from __future__ import annotations

import scrapy

from tests.integration.stock.spiders import Base

SETTINGS: dict[str, str] = {}  # the handlers are those of the test
PAGES = 12


class Spider(Base):
    name = "plugin"

    async def start(self):
        meta = {"impersonate": "chrome", "curl_cffi_options": {"impersonate": "chrome"}}
        for number in range(PAGES):
            yield scrapy.Request(f"{self.refusing}/{number}", errback=self.failed, meta=meta)
