"""What all nodes of a crawl share: its record, who lives, who owns what, the start requests, whether it is finished."""
