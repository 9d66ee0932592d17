"""Mirrors: a pay-level domain whose pages are mostly those of a greater one gets a smaller budget."""
