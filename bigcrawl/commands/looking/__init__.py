"""What an operator may ask of a crawl: `scrapy frontier status`, `explain` and others."""
