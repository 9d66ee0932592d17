"""One process of a crawl: its loops, and what they carry to Redis and back (steps 3, 9 and 12 to 14)."""
