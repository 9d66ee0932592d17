"""Stores pages on disk as WARC/1.1 files, with one gzip member a record.

An exchange (a request and its response, as sent over the wire) passes through three modules:

1. `records` turns it into a response and a request record, and defines what is kept exactly;
2. `segments` compresses them, appends them to a file that ends in ``.open``, and renames full files;
3. `recovery` cuts the torn tail off ``.open`` files whose writer died, and checks any WARC file.

`rewriting` writes a sealed file anew, with copies as references.

Life of a file, and what a crash leaves behind:

| state | name | lock | how it leaves the state |
|---|---|---|---|
| written | ``X.warc.gz.open`` | flock held by its writer | sealed: full, or the writer closes |
| abandoned | ``X.warc.gz.open`` | free, and see `writers` | recovered: cut to its last whole record, then as sealed |
| sealed | ``X.warc.gz`` | while it is indexed, uploaded or rewritten | uploaded; rewritten without copies |
| damaged rest | ``X.warc.gz.damaged`` | none | kept for the operator; a failing disk or power makes one |

Several nodes may write into one directory. On one machine the lock decides who lives; between machines, where a lock
may not be seen, the age of the file too (`writers`). Whoever holds the lock checks that the name still refers to the
locked file: it may have been sealed or removed between open and lock.
"""
