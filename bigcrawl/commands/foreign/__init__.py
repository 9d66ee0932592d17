"""Imports from other crawlers: `scrapy frontier import --from`.

The data is not ours, so its size is bounded before it is parsed, and a separate process that knows few types reads
pickles.
"""
