"""Healthy hosts among hostile ones: are they crawled as fast as alone? `python -m benchmarks.hostile --help`."""
