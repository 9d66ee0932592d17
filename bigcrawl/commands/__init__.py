"""The command `scrapy frontier ACTION`: an operator's queries and changes from outside the crawl.

Any action raises ConfigError if there is no such crawl, and TransientStoreError if Redis does not answer; in the second
case, all or some of its changes may have been made. An action with an invalid argument changes nothing.
"""
