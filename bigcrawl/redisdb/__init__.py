"""Redis: everything that says `redis`. It knows keys, scripts and servers, not the frontier.

keys                         every key
lua/, scripts/               the scripts, and a function for each
script_texts                 how calls of scripts get to Redis
client, pipelines            the connection, for everybody else
servers, pools, connections, masters   one server, Sentinel's master, or a cluster
reply_errors                 what a failed call means
embedded, server_*           the server that bigcrawl starts, and what a server must be able to do
rights, tls                  what an ACL must permit; certificates that do not fit
crawl_clock                  the time of the crawls
running_time                 what a Redis that dies cannot forget any more
"""
