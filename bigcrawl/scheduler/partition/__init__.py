"""One partition's fold over its inbox, and its commit (steps 4 to 7 of a URL's life): no Redis and no clock."""
