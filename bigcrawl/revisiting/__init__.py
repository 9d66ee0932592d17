"""When a page is visited again: what is known of it, how often it changes, and how often it is worth a visit.

    visit         what is known of a page, and how its next answer changes that
    change_rate   how often a page changes, estimated from visits that may have missed changes
    allocation    how many visits each page gets, so that the pages as a whole are as fresh as possible
    rate_sample   the rates of the pages that a node has visited lately
    hints         what sites say of how often their pages change, and when they have
    policies      the wait between two visits, by one of four rules

Pure: no clock, no files, no Scrapy. Times are seconds, and rates are changes a second.
"""
