"""What is set by hand: limits, delays and the blacklist, all written with the same names of hosts and domains."""
