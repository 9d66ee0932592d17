"""Pages that are copies of others (Mercator's content-seen test; document de-duplication).

All of it is bounded in time and memory for any page.
"""
