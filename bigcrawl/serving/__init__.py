"""What a page of a node is served with: `listener` has the port, `sites` the site and its connections.

Nothing here waits: it runs in the event loop of a crawl, whatever a client does.
"""
