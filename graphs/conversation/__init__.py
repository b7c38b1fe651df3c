"""Conversations: turns on top of the graphs, each with a search tree of its own."""
