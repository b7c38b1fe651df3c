"""The compared systems: the judge graph, its baselines, and their shared nodes."""
