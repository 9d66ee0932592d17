"""Traps: pay-level domains whose URLs, pages or names look like those of a trap get a smaller budget."""
