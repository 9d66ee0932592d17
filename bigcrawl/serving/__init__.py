"""The web server for a node's pages. It runs in the crawl's event loop and never waits for a client."""
