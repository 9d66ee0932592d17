"""One step of a partition: from entries of its inbox to the URLs chosen for Redis (steps 4 to 7 of a URL's life)."""
