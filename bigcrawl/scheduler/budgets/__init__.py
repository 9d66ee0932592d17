"""How many URLs of a PLD may pass (step 5 of a URL's life): STAR's in-degrees and BEAST's arithmetic. No I/O."""
