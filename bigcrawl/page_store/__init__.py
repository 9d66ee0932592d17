"""Moves sealed WARC files and their indexes into a store: S3, GCS, or another directory.

    sealed --> indexed --> uploaded, indexes first --> verified --> removed here, the WARC file last

`uploads` does this for one file, and for a directory. ``python -m bigcrawl.page_store`` does it in a process of its
own, which nodes start. It may be killed at any point, and ends by itself if the store stops answering.

The files in the directory are the work: there is no list that could be lost. These stores show a file only once it is
complete. So a process that is killed leaves either a file that is not in the store, which the next process uploads, or
one that is in both places, which the next process finds to be the same and removes here. A lock on the WARC file keeps
two processes from uploading it at once. A WARC file in the store is never overwritten: if a different file has its name
there, ours stays here, and is reported.
"""
