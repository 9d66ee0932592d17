"""DRUM: a disk repository of 64-bit keys that is checked and updated in bulk (IRLbot §4).

docs/drum.md is the manual.
"""
