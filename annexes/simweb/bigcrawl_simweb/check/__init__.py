"""The checker of server logs."""
