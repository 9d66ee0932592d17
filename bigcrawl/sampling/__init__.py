"""Estimates how large a web is, and draws a near-uniform sample of its pages, from recorded random walks.

`walking` makes the choices of walks, `steps` defines the record of a step, as the spider `sample` writes it, and
`estimating` makes the estimate and the sample; all are pure. `python -m bigcrawl.sampling walks.jsonl` prints them.
"""
