"""What a node shows to Prometheus: `table` says which metrics, `source` has their values, `text` writes the page.

The values are what the node knows anyway: nobody is asked for them (docs/decisions/0083). Needs the extra `metrics`.
"""
