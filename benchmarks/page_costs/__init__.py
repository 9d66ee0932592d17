"""What a page costs by its size, links, scheme, and pages a connection."""
