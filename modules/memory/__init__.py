"""The memory of conversations: saved turns, and their place in prompts."""
