"""Scrapy middlewares, and other parts that Scrapy loads by name.

`robots`, `throttle`, `polite_queue` and `dns_guarded` are for crawls without the frontier (docs/alone.md).
"""
