"""Tallies: counts for a crawl's report beyond the counters in Redis, such as sizes, media types and distinct names."""
