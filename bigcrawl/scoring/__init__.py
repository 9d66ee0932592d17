"""Scores: what texts are worth for a topic (`scorers`), and the priorities that follow from scores (`scores`)."""
