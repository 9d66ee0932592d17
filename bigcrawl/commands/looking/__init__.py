"""Read-only actions: `scrapy frontier status`, `explain` and others."""
