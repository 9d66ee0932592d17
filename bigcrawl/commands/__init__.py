"""`scrapy frontier ACTION`: what an operator asks of a crawl and changes in it, from outside.

`actions` is the table of the actions, and `frontier` the command that runs one. `opened_crawl` is the crawl as each
action has it. The rooms, each importing only from those above it:

    steering   what is changed: speed, budgets, delays, the blacklist
    moving     a crawl as one file
    foreign    what other crawlers left; lists of URLs
    looking    what is asked
    repairing  what is put right: URLs that ended, dead letters, damaged partitions
"""
