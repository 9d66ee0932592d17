"""Optional features of a crawl, one in each folder; `bigcrawl.feature_list` registers them."""
