"""Stores pages on disk as WARC/1.1 files, with one gzip member per record.

| state | name | lock | how it leaves the state |
|---|---|---|---|
| written | ``X.warc.gz.open`` | flock held by its writer | sealed: full, or the writer closes |
| abandoned | ``X.warc.gz.open`` | free, and see `recovery` | recovered: cut to its last whole record, then sealed |
| sealed | ``X.warc.gz`` | while it is indexed, uploaded or rewritten | uploaded; rewritten without copies |
| damaged rest | ``X.warc.gz.damaged`` | none | kept for the operator after a disk or power failure |

The holder of a lock checks that the name still refers to the locked file.
"""
