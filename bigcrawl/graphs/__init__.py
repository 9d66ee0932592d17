"""Graphs of stored pages: which page links to which, and so with hosts and pay-level domains.

- `links`: the links of a stored page, as a crawl takes them.
- `building`: numbers the nodes by name and the edges by node, on disk, in bounded memory.
- `forms`: writes nodes and edges, in WebGraph's ASCII form and as Parquet.
- `outputs`: a file gets its name when it is whole.
"""
