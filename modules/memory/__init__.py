"""Turns of conversations: what is kept of them, and what prompts show of it."""
