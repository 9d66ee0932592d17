"""One step of a partition: from the entries of its inbox to the URLs chosen for Redis (steps 4 to 7)."""
