"""How many URLs of a pay-level domain may pass (step 5): STAR's in-degrees and BEAST's arithmetic. No I/O."""
