"""Pages that are copies of others (Mercator's content-seen test; 003, document de-duplication).

`text` takes the text out of a page, `shingles` hashes its phrases, and `sketches` makes 64 bytes of them that tell how
similar two pages are. `exact_copies` and `near_copies` find, in maps of DRUM, the page that a new one is a copy of, and
`copies` is the map of what was found. A crawl's partitions ask them (`bigcrawl.scheduler.partition.fold.step`). All
of it is bounded in time and memory whatever the page, and knows no Redis and no Scrapy.
"""
