"""Page totals: limits set by hand on all pages, or all bytes, of an account (`scheduler.rules.budget_rules`)."""
