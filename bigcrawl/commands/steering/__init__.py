"""Actions that change a crawl: `scrapy frontier speed`, `blacklist` and others."""
