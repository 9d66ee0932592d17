"""How large a web is, and a near-uniform sample of its pages, from random walks of which each step is known.

`walking` has the choices of walks, `steps` the record of a step, as the spider `sample` writes it, and `estimating` the
estimate and the sample; all are pure. `python -m bigcrawl.sampling walks.jsonl` prints them.
"""
