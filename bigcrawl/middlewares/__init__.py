"""Scrapy middlewares, and other parts that settings of Scrapy name.

`robots`, `throttle`, `polite_queue` and `dns_guarded` are for crawls without the frontier (docs/alone.md).
"""
