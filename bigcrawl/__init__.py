"""bigcrawl: Scrapy at the scale of the web. Start reading at `bigcrawl.scheduler`."""

__version__ = "0.1.0"
