"""One turn of a conversation: its graph, state and prompts, and its place in the checkpoint store."""
