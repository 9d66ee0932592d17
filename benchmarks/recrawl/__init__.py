"""Visits again: what the second cycle costs, how good estimates of rates of change are, and how fresh pages stay."""
