"""Reads the crawls of other crawlers, for `scrapy frontier import --from`.

The data is not ours: its size is bounded before it is parsed, and a process that knows few types reads pickles.
"""
