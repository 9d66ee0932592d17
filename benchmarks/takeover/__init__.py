"""`python -m benchmarks.takeover`: how long another node takes to take over all partitions of a large crawl."""
