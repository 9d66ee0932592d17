"""Durable points of directories, kept in an object store: S3, GCS, or another directory.

`objects` reads and writes whole objects, and every call ends within a bounded time. `points` has the bytes of a point:
which pieces of which objects make up its files. `series` writes the points of one directory, finds and fetches them,
and clears old ones away. All of it knows bytes and names only.
"""
