"""Hosts that fail, send what is bad, or have no end."""
