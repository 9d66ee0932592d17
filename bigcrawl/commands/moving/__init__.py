"""A crawl as one file: `scrapy frontier export` and `import`."""
