"""One partition's fold over its inbox, and its commit (steps 4 to 7): files only, no Redis and no clock."""
