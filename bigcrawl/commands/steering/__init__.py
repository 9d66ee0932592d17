"""What an operator may change in a crawl: `scrapy frontier speed`, `blacklist` and others."""
