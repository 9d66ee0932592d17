"""The dashboard: a web page that shows and steers a crawl through the actions of `scrapy frontier`.

A node serves it (`extensions.dashboard`), or a command without a node (`commands.looking.dashboard`). The event loop
only reads requests and writes answers; worker threads wait and compute.
"""
