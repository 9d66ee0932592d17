"""URLs that wait on disk (step 6): turns of front queues, the over-budget queue, parked queues, and their files."""
