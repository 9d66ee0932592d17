"""DRUM: a repository of 64-bit keys on disk that is checked and updated in bulk (IRLbot §4).

docs/drum.md is the manual.
"""
