"""The partitions that this node owns: claimed, stepped, kept durable, released (steps 4 to 8 of a URL's life)."""
