"""The commands: what they are called with, and what they do."""
