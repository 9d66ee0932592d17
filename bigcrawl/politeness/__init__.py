"""When a host may be asked: robots rules, DNS answers, delays, back-off, the crawl's speed.

Decisions only: the caller provides clock and random numbers, and nothing here depends on Redis or Scrapy.
"""
