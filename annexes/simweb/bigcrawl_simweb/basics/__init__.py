"""Shared modules: stateless randomness, features, answers, resources, log lines."""
