"""One step of a partition: from the entries of its inbox to the URLs that are chosen for Redis (steps 4 to 7).

step           the order of what follows, on a fork of the partition's state
step_sources   what is asked for budgets and priorities, and what must be asked again
seen           reads entries, and looks up their URLs in URLSeen
edges          links between PLDs
imported_rows  rows of tables from another crawl
rejected       what an owner could not decode
budgeting      the place of each URL in the turns
budget_source  its shape
pld_records    the records of the PLDs that a step meets
page_totals    counts of pages that have a limit
trap_marks     which PLDs look like traps, and what that costs them, and mirrors
mirroring      which PLDs have contents in common, and are mirrors
admission      the choice of the URLs to admit
"""
