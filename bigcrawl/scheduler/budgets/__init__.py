"""How many URLs of a pay-level domain may pass (step 5): STAR's in-degrees, BEAST's arithmetic, traps, mirrors.

These modules are pure, except `same_content` and `wildcard_dns`, which remember what a node has recently seen.
"""
