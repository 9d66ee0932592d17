"""DRUM as in IRLbot §4.3: an array of buckets, and <key, value, aux> tuples that wait on disk for a merge.

drum        `Drum`: tuples in, answers in their order
offers      the file of tuples that wait, and their column `aux`
gathered    the same by bucket, as a merge needs them
merge       answers tuples, bucket by bucket
"""
