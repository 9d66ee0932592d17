"""Priorities of sites, set by hand like their budgets (`scheduler.rules.budget_rules`)."""
