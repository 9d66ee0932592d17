"""What a URL-seen check costs the disk: bytes read and written for each byte of URL text offered.

IRLbot §4 calls that figure alpha and gives it as formulas. Here the formulas stand in `models`, the figures the
paper prints in `paper`, and beside them the methods themselves, each with every byte counted that it moves:

    mercator      Mercator-B: hashes in memory, text on disk, one sorted file rewritten at each merge
    polybot       PolyBot: text in memory, one front-coded file rewritten at each merge
    paper_drum    DRUM as the paper draws it: k buckets on disk, one pass over the sorted hashes for all of them
    ours          bigcrawl's: the same buckets, behind them tiered runs

None of them has a cache of popular URLs in front of it: the paper compares them so, and each would gain as much.
What is counted are calls, not the disk's own traffic: the page cache of the machine spares none of them a byte.

`python -m benchmarks.drum_cost` prints the tables and writes drum_cost.json; docs/drum-cost.md says what
came out.
"""
