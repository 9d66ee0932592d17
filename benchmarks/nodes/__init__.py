"""`make bench-nodes`: what Redis and each node pay for a page when 1, 2, 4 and 8 nodes share a crawl."""
