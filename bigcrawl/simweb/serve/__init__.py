"""Serves the web on loopback addresses: an HTTP server, a DNS server, and their logs."""
