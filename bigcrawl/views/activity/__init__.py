"""What a crawl does now and did last: its possible rate, last fetches, events; other crawls of its Redis."""
