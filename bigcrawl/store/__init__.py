"""Reads and writes an object store: S3, GCS, or another directory. It knows only bytes and names."""
