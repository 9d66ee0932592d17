"""Actions on stored pages: check, index, compact and upload WARC files, or get a page out."""
