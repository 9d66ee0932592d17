"""The estimated size of a web, and a near-uniform sample of its pages, from recorded random walks.

All but `python -m bigcrawl.sampling walks.jsonl`, which prints them, is pure.
"""
