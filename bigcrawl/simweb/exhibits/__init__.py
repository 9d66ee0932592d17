"""Exhibits: odd things that a host may answer, each with what a right crawler makes of it; `table` has all of them."""
