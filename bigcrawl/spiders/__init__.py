"""The spiders of `scrapy crawl`, which are also base classes for users' spiders."""
