"""A URL in each of its states, as data and bytes: queued, a member of a back queue, held, ended; and how it is told."""
