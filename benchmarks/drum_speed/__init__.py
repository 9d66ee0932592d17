"""How fast URLs get their verdicts from a large set: DRUM beside what others use, in one run."""
