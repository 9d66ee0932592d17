"""From "may be fetched" to "ended" on one node (steps 11 and 12 of a URL's life); memory only."""
