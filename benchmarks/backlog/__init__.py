"""`make bench-backlog`: a crawl with 10^9 URLs seen and 10^8 waiting; memory of node and Redis, and opening it again.

    state     the partitions' directories: URLSeen made as runs, what waits folded in step by step
    node      a process with a node on that state: it hands out, ends pages and offers their links as fast as it can;
              fetching and parsing take no time
    __main__  options, what is asked of it, the table

Held fixed: 256 partitions and every default but the host delay, which is 0; names are resolved, robots.txt is ignored.
"""
