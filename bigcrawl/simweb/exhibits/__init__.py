"""Exhibits: odd things that a host may answer, each with the right reaction of a crawler; `table` lists them all."""
