"""Scores of URLs, and the priorities that follow from them (`scores`)."""
