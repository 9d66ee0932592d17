"""The Redis of a crawl: a cluster, replicas, rights, passwords."""
