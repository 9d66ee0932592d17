"""Item pipelines for any Scrapy project: `warc` stores every exchange, with the frontier or without."""
