"""Scrapy extensions of a node, from progress rows to the dashboard. Each is a thin adapter."""
