"""Decides when a request may be sent to a host: robots rules, DNS answers, delays, back-off, the crawl's speed.

The caller provides clock and random numbers, and nothing here depends on Redis or Scrapy.
"""
