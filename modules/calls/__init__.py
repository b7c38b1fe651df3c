"""A model call: what it asks, what comes back, what it took, and the journal of it all."""
