"""One turn of a conversation: its graph, its state, its prompts, and where it is kept."""
