"""Spills: tuples that wait on disk for a merge, and the answers to them until they are told.

write_buffer  tuples in memory, until they are a spill
spill         what a spill is, and its files
sections      files in sections, one for each bucket
aux_file      the aux of a spill
answers       the answers to a spill
"""
