"""Names resolved in bulk: the node's cache and resolver against a name server in a process of its own.

What is promised: 10,000 names in 5 s, while each answer takes its time and some names are dead. The name server is the
simulated web's; each of its answers is delayed, as those of a resolver that must ask further are.
"""
