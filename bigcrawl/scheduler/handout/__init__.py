"""Hands URLs that may be fetched to the engine, and ends them (steps 11 and 12 of a URL's life); memory only."""
