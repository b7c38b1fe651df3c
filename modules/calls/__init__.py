"""Model calls: requests, completions, usage, budget, prices, and the journal of all calls."""
