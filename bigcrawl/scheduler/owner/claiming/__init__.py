"""How a node comes to own a partition, and how it ceases to.

claims    claims free partitions, and all again after a restart of Redis
opening   opens what was claimed
bring_up  brings Redis and the disk of a partition in line before it is used
releases  releases partitions, so that others may claim them
"""
