"""One thread of a search: its state, its context, where it is kept, and what its checkpoints say."""
