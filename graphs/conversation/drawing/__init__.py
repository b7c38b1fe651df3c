"""Conversation trees as data and as pictures."""
