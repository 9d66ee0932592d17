"""When a host may be asked, and for what: robots rules, DNS answers, delays, back-off, the crawl's speed.

Decisions only. The caller provides clock and random numbers, and nothing here knows Redis or Scrapy: the frontier uses
these modules for all nodes, and the middlewares that work without it for one process.
"""
