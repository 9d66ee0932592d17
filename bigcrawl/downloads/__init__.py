"""One fetch, from Scrapy's engine to its response.

A direct GET uses libcurl, anything else Scrapy's own handler. The frontier chooses the address and may abort.
"""
