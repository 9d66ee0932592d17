"""Whether a taken URL may be fetched, and when (step 10); `gatekeeper` asks the other modules in turn."""
