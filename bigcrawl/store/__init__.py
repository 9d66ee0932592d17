"""What is kept in an object store: S3, GCS, or another directory.

`opening` opens the store of a URL. `objects` reads and writes whole objects of some megabytes, and every call ends
within a bounded time. `points` has the bytes of a durable point of a directory: which pieces of which objects make up
its files. `series` writes the points of one directory, finds and fetches them, and clears old ones away. `whole_files`
puts files there that are larger than memory, and proves that they are there. `local_files` writes where the store is a
directory. All of it knows bytes and names only.
"""
