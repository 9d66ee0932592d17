"""DRUM: a disk repository of 64-bit keys that takes checks and updates in bulk (IRLbot §4). docs/drum.md is its manual.

`drum.Drum` is the repository of the paper: it collects what is asked in `spills`, answers in passes over its files
(`merge`), and is committed by its manifest (`committed_spills`). `key_set` answers at once instead, key by key, for
Scrapy's own scheduler. Both stand on buckets of sorted runs (`bucket`, `memtable`, `run`); a partition of the frontier
uses buckets too, under a manifest of its own. What must be durable is written through `files`. All of it knows keys and
files, not URLs, Redis or Scrapy.
"""
