"""`make mutation`: change modules a little, one change at a time, and list the changes that no test notices."""
