"""Pages that are stored: copies, indexes, stores, disks that fail, and spiders that read them again."""
