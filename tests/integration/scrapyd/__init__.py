"""Crawls as jobs of scrapyd."""
