"""Rules set by hand: budgets, delays and the blacklist. All use the same syntax for names of hosts and domains."""
