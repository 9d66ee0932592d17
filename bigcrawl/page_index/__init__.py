"""Indexes of sealed WARC files: CDXJ, to find and replay pages, and Parquet, to query a whole crawl.

An index is a function of its WARC file alone, so it can be made again at any time:

1. `page_records` reads a file once, and joins each response with the records that belong to it;
2. `cdxj` and `search_key` turn each into a line of CDXJ, `sorted_lines` sorts them with bounded memory; `parquet` turns
   each into a row, with its time by `moments`;
3. `index_files` makes the indexes of one file, each complete before it gets its name;
4. `unindexed` lists the files of a directory that lack one, and `lookup` finds a URL's captures;
5. ``python -m bigcrawl.page_index`` makes them in a process of its own, which nodes start at low priority.

| file | name |
|---|---|
| pages | ``X.warc.gz`` |
| CDXJ, sorted | ``X.cdxj`` |
| Parquet, in the order of the pages | ``X.parquet`` |
| being made | ``X.cdxj.new``, ``X.parquet.new``; its maker has a lock on ``X.warc.gz`` |

A crash leaves at most a ``.new`` file, which the next maker overwrites.
"""
