"""What meta and cb_kwargs of a stored request may hold."""
