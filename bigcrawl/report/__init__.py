"""The report of a crawl: its figures in the tables of the papers, as a page and as JSON.

    tables    tables and plots as data
    rates     the crawl's history in steps of equal length
    figures   gathers what Redis and the partitions' files know
    plds      PLDs: pages against in-degree, and the top ones
    overview, polybot, irlbot, ubicrawler, politeness
              the sections, each a function from figures to tables and plots
    document  the whole report, and its JSON
    html      the page; everything in it is escaped here
    files     writes both

Everything is bounded: lists are cut, and histories have steps. A report of any crawl is far below 5 MB.
Sources: PolyBot §4.1 (Tables 4.1 and 4.2), IRLbot §7 (Figures 5 and 6, Table 4), UbiCrawler §6.
"""
