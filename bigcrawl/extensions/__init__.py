"""Scrapy extensions: what a node shows and writes beside its crawl, from progress rows to the dashboard.

Each is thin: the dashboard, the report, the metrics and the log's lines are made by packages of their own.
"""
