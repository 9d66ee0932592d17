"""Whether and when a taken URL may be fetched (step 10 of a URL's life); `gatekeeper` asks the other modules."""
