"""What a crawl's report counts beyond the counters in Redis: sizes, types, distinct names, and gaps as kept.

A node counts in memory, a few microseconds a page, and sends the whole now and then (`scheduler.crawl.shared_tallies`).
Everything here has a bounded size, and any two tallies can be added: those of several nodes, and of earlier runs.

    tallies      all of them, as one value; how it is written and read
    distinct     how many different names there were, within 2 %
    frequent     the most frequent names, each with its count
    sampled      a fair sample of names, each with its exact count
    gaps         gaps between fetches, against the gaps that were due
"""
