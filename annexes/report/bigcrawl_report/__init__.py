"""The report of a crawl, as a page and as JSON, with the tables of the papers.

Lists are cut and histories are sampled, so a report of any crawl is far below 5 MB. Sources: PolyBot §4.1 (Tables 4.1
and 4.2), IRLbot §7 (Figures 5 and 6, Table 4), UbiCrawler §6.
"""
