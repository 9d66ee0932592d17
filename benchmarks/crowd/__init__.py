"""Fetches at a time in a crowd: `make bench-crowd`."""
