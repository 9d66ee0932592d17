"""State that all nodes of a crawl share: its record, live nodes, ownership, start requests, whether it is finished."""
