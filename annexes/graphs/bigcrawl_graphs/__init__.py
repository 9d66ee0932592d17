"""Graphs of stored pages, of their hosts and of their pay-level domains."""
