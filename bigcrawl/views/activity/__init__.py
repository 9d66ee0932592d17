"""A crawl's activity: its possible rate, recent fetches and events; also the other crawls of its Redis."""
