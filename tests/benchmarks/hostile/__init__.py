"""Healthy hosts among hostile ones: are they crawled as fast as alone? `python -m tests.benchmarks.hostile --help`."""
