"""Spills: tuples that wait on disk for a merge, and the answers to them until they are delivered."""
