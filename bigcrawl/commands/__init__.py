"""The command `scrapy frontier ACTION`: an operator's queries and changes from outside the crawl.

Any action raises ConfigError if there is no such crawl, and TransientStoreError if Redis does not answer, when some or
all of its changes may have been made. An invalid argument changes nothing.
"""
