"""Rules set by hand: scope, filters, budgets, delays and the blacklist. No I/O."""
