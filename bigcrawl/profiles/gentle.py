"""Settings of a broad and gentle crawl: 30 s between two pages of a site, or ten times the last download.

Source: PolyBot §1.3, §3.4. A site has one page in 30 s at most, so the speed is that of the sites there are: 3,000 that
have pages left are a hundred pages a second.
"""

from __future__ import annotations

BIGCRAWL_HOST_DELAY = 30.0
BIGCRAWL_HOST_CONNECTIONS = 1
BIGCRAWL_DOWNLOAD_FACTOR = 10.0
BIGCRAWL_CRAWL_DELAY_MAX = 300.0
BIGCRAWL_PLD_DELAY = 5.0  # many hosts of one site are often one machine
BIGCRAWL_SERVER_DELAY = 1.0
BIGCRAWL_BACKOFF = 60.0
BIGCRAWL_HOT_URLS = 200_000  # room for the many hosts that rest at a time
BIGCRAWL_HOST_HOT_URLS = 20  # ten minutes of a host
