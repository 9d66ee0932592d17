"""The URLs of an owned partition in Redis."""
