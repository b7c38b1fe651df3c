"""Decides which chunks of a search tree ask their sub-questions, and in which order."""
