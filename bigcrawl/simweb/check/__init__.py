"""Checks from the servers' logs whether a crawl of the web was complete, without repetition, and polite."""
