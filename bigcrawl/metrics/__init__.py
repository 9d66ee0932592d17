"""A node's metrics for Prometheus, from values that the node has anyway (docs/decisions/0083).

Needs the extra `metrics`.
"""
