"""Revisits: pages are visited again, as often as they change, or when their site reports a change."""
