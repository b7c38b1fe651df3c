"""Conversations: turns and branches on top of the search graphs."""
