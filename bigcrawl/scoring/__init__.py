"""Scores of texts for a topic (`scorers`), and the priorities of scores (`scores`)."""
