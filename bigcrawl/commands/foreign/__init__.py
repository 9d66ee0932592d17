"""What other crawlers left: `scrapy frontier import --from`.

Whatever is read here was written by others. So its size is bounded before it is parsed, and pickles are read in a
process of their own, which knows few types.
"""
