"""URLs that wait on disk (step 6): the front queues of each turn, the over-budget queue, parked queues, their files."""
