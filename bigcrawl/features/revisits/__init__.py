"""Revisits: pages are visited again as often as they change, or sooner if their site reports a change."""
