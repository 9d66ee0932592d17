"""Indexes of sealed WARC files: CDXJ, to find and replay pages, and Parquet, to query a whole crawl.

An index, ``X.cdxj`` or ``X.parquet``, is a function of ``X.warc.gz`` alone, so it can be rebuilt at any time.
"""
