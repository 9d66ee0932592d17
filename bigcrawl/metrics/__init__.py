"""A node's metrics for Prometheus, from values that it has anyway (docs/decisions/0083); the extra `metrics`."""
