"""One fetch, from Scrapy's engine to its response.

`downloader` stands in the place of Scrapy's, and `http` is its handler for http and https. A direct GET goes through
libcurl (`transfers`, `response_builder`), everything else through Scrapy's own handler. It asks the frontier, through
`scheduler.adapter`, which address to connect to and when to abort.
"""
