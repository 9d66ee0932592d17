"""Shared by all rooms of the simulated web: stateless randomness, features, answers, resources, lines of logs."""
