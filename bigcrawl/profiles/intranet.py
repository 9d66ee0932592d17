"""Settings of an intranet of some 100,000 pages, kept as fresh as possible.

Source: Nexplorer §2.1. Every page has one visit in four hours on the average, and those that change often have more:
7 visits a second of 100,000 pages, over all hosts. Set `BIGCRAWL_REVISIT_SECONDS` to the number of pages divided by the
visits a second that the servers can bear.
"""

from __future__ import annotations

BIGCRAWL_ALLOW_PRIVATE_ADDRESSES = True
BIGCRAWL_PARTITIONS = 32  # enough for two nodes, and small partitions cost time
BIGCRAWL_BUDGET_POLICY = "none"  # budgets divide a crawl between many domains
BIGCRAWL_HOST_DELAY = 0.1
BIGCRAWL_SERVER_DELAY = 0.05
BIGCRAWL_REVISIT = "freshness"
BIGCRAWL_REVISIT_SECONDS = 14_400.0
BIGCRAWL_REVISIT_SECONDS_MIN = 60.0
BIGCRAWL_REVISIT_SECONDS_MAX = 604_800.0
BIGCRAWL_BACKOFF_MAX = 3_600.0  # a server that was off for the night is asked again in the morning
BIGCRAWL_HOST_FAILURES_MAX = 0
BIGCRAWL_CLOSE = "forever"
