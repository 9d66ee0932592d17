"""`python -m benchmarks.merges`: whether a crawl fetches as fast while large runs are merged.

PolyBot's crawl stood still for minutes while its URLs were merged (§4.2). Here partitions begin with millions of keys
in URLSeen, in runs of all sizes, so that after some steps each of them merges all it has. The crawl is a real one, of
the web that `make bench` crawls; crawler on core 0 with all its threads, web server and Redis on core 1.

Held fixed: how many pages a second there can be, by the host delay; `--full-speed` has none, and then everything that a
merge costs is missing elsewhere, for the one core is full.

    prefill   directories of partitions with runs that are about to be merged
    step_log  what the node did when: one line a step, written by the crawl's own process
    dips      arithmetic: pages in the server's log, by what the node did meanwhile
    __main__  options, the run, what is printed
"""
