"""Spiders as people write them; the tests copy them into a project that `scrapy startproject` made.

None of them knows of bigcrawl, but for `links`.
"""
