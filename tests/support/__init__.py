"""What tests share.

running        processes: started, forked from a warm one, waited for; loops in a time of the test's own
crawling       crawls, the project of a user, what a crawl must come to
redis_servers  servers and clusters, such that fail, and worlds of scripts
servers        what else answers: names, objects, sites, an image of ops/
disks          file systems and stores that fail
worlds         the surroundings of one part
faults         kinds of faults, injected at random
hostile        a web that means harm
costs          what inputs from outside cost

Beside them: names and keys (keys), logs, imports, the number of examples (sizes), the order of files (file_order).
"""
