"""URLs that wait on disk (step 6 of a URL's life): front queues, the over-budget queue, parked queues, their files."""
