"""Several processes of a crawl, several crawls, and how they end, stop and go on."""
