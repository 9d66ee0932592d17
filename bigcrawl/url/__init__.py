"""URLs: their canonical form, key, pay-level domain and shape."""
