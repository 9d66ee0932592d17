"""WACZ files of stored pages: archives, index and list of pages in one ZIP file.

command  `scrapy frontier wacz`
packing  what is in the file, and in which order
pages    which captures are pages, and their titles
archive  the ZIP file, with a hash of each part
"""
