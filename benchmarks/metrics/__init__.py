"""What it costs a node to be watched."""
