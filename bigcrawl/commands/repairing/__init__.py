"""What an operator may put right in a crawl: `scrapy frontier retry`, `dead`, `rejected`, `repair` and others."""
