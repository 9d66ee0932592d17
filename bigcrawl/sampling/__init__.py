"""How large a web is, and a near-uniform sample of its pages, from random walks of which each step is known.

`steps` has the record of a step, and reads what the spider `sample` has written. `estimating` has the estimate and the
sample; both are pure. `python -m bigcrawl.sampling walks.jsonl` prints them.
"""
