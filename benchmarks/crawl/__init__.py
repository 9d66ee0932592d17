"""`make bench`: bigcrawl with everything on against Scrapy and scrapy-redis, in one run on one machine.

Held fixed: one origin and its pages (21 KB, 60 links, 10 % of them new), the links that are extracted (`agreement`
holds the sides to each other), 1,000 hosts, no delay, 64 requests at a time, robots.txt obeyed. The crawler with
all its threads has core 0 to itself; origin, Redis and the harness share core 1. `sides` is the one place that
says how each side is set up.

A round runs every side once, one after the other; rounds repeat, so that what disturbs the machine disturbs all.
A run is measured once the crawl is warm (`run` says when), so start-up counts for nobody:

    pages       whole answers in the origin's own log, robots.txt apart: no side's own counters are believed
    CPU         user and system time of all threads, by the kernel's account; Redis' is added to its user's
    trouble     what else ran on the cores, and whether the crawler was the bottleneck: such a run is marked, and
                counts only where a side has no other; its pages/s are not to be quoted
    faults      links not extracted, pages not stored: such a run is no fair one, and the benchmark fails

    __main__    options, the rounds, what is printed and written
    sides       settings and spider of each side;  side_process runs one, in a process of its own
    origin      the web that is crawled, and how many of its pages were
    procfs      CPU and memory of processes and cores;  pinning
    run         one side once: a `Measurement`;  figures: arithmetic of samples, medians, ratios
    profiler    a stack sampler in the crawler's process;  stages: from stacks to microseconds a page by stage
    agreement   whether all sides do the same work
    report      tables;  machine: what the figures were taken on
"""
