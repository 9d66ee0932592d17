"""What it costs to know copies of pages, how well near ones are found, and that memory is bounded."""
