"""How many URLs of a pay-level domain may pass (step 5): STAR's in-degrees, BEAST's arithmetic, traps.

All of it is pure but `same_content` and `wildcard_dns`, which remember what a node has seen of late.
"""
