"""Finds pages that are copies of others (Mercator's content-seen test), in bounded time and memory for any page."""
