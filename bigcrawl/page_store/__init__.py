"""Moves sealed WARC files and their indexes into a store: S3, GCS, or another directory.

    sealed --> indexed --> uploaded, indexes first --> verified --> removed here, the WARC file last

`uploads` does this for one file, and for a directory. ``python -m bigcrawl.page_store`` does it in a process of its
own, which nodes start; it may be killed at any point, and ends by itself if the store stops to answer.

What is in the directory is what has to be done: there is no list of work that could be lost. A file has its name in the
store once it is whole there, because these stores show nothing before. So a process that is killed leaves either a file
that is not in the store, which the next one uploads, or one that is in both places, which the next one finds to be the
same and removes here. A lock on the WARC file keeps two from uploading it at once. A WARC file in the store is never
written again: if another one has its name there, ours stays where it is, and that is told.
"""
