"""Spiders over pages that an earlier crawl stored, without a network (`BIGCRAWL_SOURCE`).

The spider yields requests and links as usual, and WARC files answer them. A request for another page is dropped and
counted. Pages are given in the order in which they were fetched, so callbacks get the same pages as in the crawl.
"""
