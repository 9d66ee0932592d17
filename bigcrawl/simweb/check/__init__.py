"""Was a crawl of the web complete, without repetition, and polite? Asked of the servers' logs."""
