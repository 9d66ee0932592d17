"""One process of a crawl: its loops, and their exchange with Redis (steps 3, 9 and 12 to 14 of a URL's life)."""
