"""Page totals: limits, set by hand, on an account's pages or bytes in all (`scheduler.rules.budget_rules`)."""
