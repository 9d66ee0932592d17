"""Decides when to visit a page again, from its history, its site's hints and the rates of other pages.

Uses no clock, no files, no Scrapy. Times are seconds, and rates are changes a second.
"""
