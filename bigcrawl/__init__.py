"""bigcrawl: Scrapy at the scale of the web. Start reading at `bigcrawl.scheduler`."""

from __future__ import annotations

__version__ = "0.1.0"
