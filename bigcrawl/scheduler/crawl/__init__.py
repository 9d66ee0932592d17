"""The state that all nodes of a crawl share."""
