"""Whole hosts: a host that a link leads to is fetched whole, breadth-first, before another one (UbiCrawler §3, §6)."""
