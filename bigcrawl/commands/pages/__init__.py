"""Actions on stored pages: check WARC files, index them, join what is stored twice, get a page out."""
