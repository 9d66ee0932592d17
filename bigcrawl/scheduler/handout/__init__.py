"""From "may be fetched" to "ended" inside one node (steps 11 and 12); memory only."""
