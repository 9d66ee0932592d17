"""A URL in each of its states, as data and bytes: queued, in a back queue, held by a node, ended."""
