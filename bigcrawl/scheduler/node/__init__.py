"""One process of a crawl: its loops, and what they send to Redis and fetch from it (steps 3, 9 and 12 to 14)."""
