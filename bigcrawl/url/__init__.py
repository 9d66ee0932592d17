"""URLs: their canonical form, key, pay-level domain and shape. Pure, and imports nothing but errors and settings."""
