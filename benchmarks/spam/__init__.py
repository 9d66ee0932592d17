"""`python -m benchmarks.spam`: how long legitimate pages take in a web of which spam farms are the most.

One simulated web, crawled by real processes (node, embedded Redis, web server and its resolver), three times:

    clean   without the farms
    star    with them, budgets by BIGCRAWL_BUDGET_POLICY = star
    bfs     with them, no budgets: first come, first served

`--sides` names other ways to crawl. `--homes` adds shared domains with home directories, beside which spam makes up
others where there are farms.

Held fixed: seed, seeds, ordinary pages and the links between them (farms change none of these), the time an answer
takes, and how many requests are under way at a time. Those two bound the fetches a second, so that whatever is spent
on a farm is missing elsewhere: it is the order that makes the difference, not the machine. All figures are from the
server's own log and from the generator's own links.

    __main__    options, the runs, what is printed and written
    web         the web, and how it is served slowly;  origin: its process
    run         one crawl, until every legitimate page is there, or its time is up
    timeline    arithmetic: from a log to what was fetched when;  discovery: whose the discovered URLs are
    even        how much spam budgets that are the same for all cost at least
    turns       how many turns the partitions had, and what their budgets allowed
    report      tables

It takes root: the crawl's process has a resolv.conf of its own.
"""
