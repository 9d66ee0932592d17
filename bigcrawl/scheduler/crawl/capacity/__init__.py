"""The capacity that a node takes from its machine."""
