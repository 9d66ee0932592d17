"""URLs of an owned partition in Redis: which there are, when they may be taken, and how more of them get there.

hot_set      how many URLs each host has there, and hosts that are snoozed or retired
hot_share    how many URLs of one host may be there, and how many extra ones
admissions   admit batches, until Redis has confirmed them
admit_calls  the call that admits a batch
taking       when URLs may be taken, and how many to ask for
due_heap     the partitions of a node by that time
"""
