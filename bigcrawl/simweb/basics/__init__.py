"""What all rooms of the simulated web use: randomness without state, features, answers, resources, lines of logs."""
