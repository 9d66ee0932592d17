"""Runs spiders over pages that an earlier crawl stored, without a network (`BIGCRAWL_SOURCE`).

A spider asks for pages as ever, by its start requests and its links. A request is answered from the WARC files; one for
a page that is not there is dropped and counted. Pages come in the order in which they were fetched, one after another,
so what a callback is given is what it was given in the crawl: a page had been asked for before it was fetched.

    files      which files a pattern names
    catalogue  where the pages of each URL are, and in which order they were fetched
    templates  what requests have beside their URLs, once for all that are alike
    wanted     which pages are asked for, and which is next
    pages      reads a page with its request and its notes
    responses  makes a Response of it
    handler    the download handler: the only way to a page, for media pipelines too
    intake     takes what the spider asks for
    scheduler  Scrapy's scheduler, and the frontier that the middlewares see
    installing puts all that into a project's settings
"""
