"""Actions that repair a crawl: `scrapy frontier retry`, `dead`, `rejected`, `repair` and others."""
