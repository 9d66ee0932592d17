"""How soon a crawl fetches the pages that matter: cumulative PageRank by order (UbiCrawler §6.2, Figure 2)."""
