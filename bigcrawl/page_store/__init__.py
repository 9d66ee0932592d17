"""Moves sealed WARC files and their indexes into a store: S3, GCS, or another directory.

    sealed --> indexed --> uploaded, indexes first --> verified --> removed here, the WARC file last

The process that uploads may be killed at any point: the directory is the list of work, and the store shows a file only
once it is complete. A different file in the store is never overwritten; ours stays and is reported.
"""
