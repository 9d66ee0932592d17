"""Exhibits: unusual answers of hosts, each with the right reaction of a crawler."""
