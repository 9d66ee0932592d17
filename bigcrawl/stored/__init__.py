"""Runs spiders over pages that an earlier crawl stored, without a network (`BIGCRAWL_SOURCE`).

A spider asks for pages as usual, by its start requests and its links. A request is answered from the WARC files. A
request for a page that is not stored is dropped and counted. Pages come one after another, in the order in which they
were fetched. In the crawl, each page was asked for before it was fetched, so callbacks get the same pages as then.

    files      which files a pattern names
    catalogue  where the pages of each URL are, and in which order they were fetched
    templates  everything in requests but their URLs, stored once for all that are alike
    wanted     which pages are asked for, and which is next
    pages      reads a page with its request and its metadata
    responses  makes a Response from it
    handler    the download handler: the only way to a page, for media pipelines too
    intake     takes what the spider asks for
    start      says whether its start requests run
    scheduler  Scrapy's scheduler, and the frontier that the middlewares see
    installing puts all that into a project's settings
"""
