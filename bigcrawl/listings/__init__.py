"""What sites list of their own pages: `sitemaps` and `feeds`, read in slices and without a tree."""
