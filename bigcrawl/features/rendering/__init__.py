"""Rendering: pages that scripts make are shown in a browser, by the annex `bigcrawl_rendering`."""
