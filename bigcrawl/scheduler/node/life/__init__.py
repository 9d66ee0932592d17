"""How a node begins and ends."""
